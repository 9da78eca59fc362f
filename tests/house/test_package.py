"""What is shipped is what stands in the package's folders, all of it and nothing else."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import isoform

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
FLOORS = ("dialects", "lowering", "passes", "compiler", "testing")
# Files to copy, which guides look for beside the package.
COPIED = "examples"


def package_folders() -> list[Path]:
    """Return the folders that hold an `__init__.py`, relative to the root."""
    found = [p.parent for floor in FLOORS for p in (ROOT / floor).rglob("__init__.py")]
    return [Path("."), *sorted(p.relative_to(ROOT) for p in found)]


def test_every_package_folder_is_listed() -> None:
    names = [".".join(("isoform", *folder.parts)) for folder in package_folders()]
    assert sorted(SETTINGS["tool"]["setuptools"]["packages"]) == sorted(
        [*names, f"isoform.{COPIED}"]
    )


def test_every_folder_with_python_files_is_a_package() -> None:
    folders = {p.parent for floor in FLOORS for p in (ROOT / floor).rglob("*.py")}
    assert sorted(f for f in folders if not (f / "__init__.py").is_file()) == []


def test_the_type_checker_sees_the_package_under_its_name() -> None:
    """An editable install imports the package through these links, and Python caches there."""
    entries = (p for p in (ROOT / ".pyright" / "isoform").iterdir() if p.name != "__pycache__")
    links = {p.name: p.resolve() for p in entries}
    assert links == {name: ROOT / name for name in (*FLOORS, COPIED, "__init__.py", "py.typed")}


@pytest.mark.slow
def test_type_checkers_resolve_an_editable_install(tmp_path: Path) -> None:
    """In a venv of its own, from a file outside the tree, with the venv's interpreter."""
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, capture_output=True, text=True, env=clean, cwd=tmp_path)
        return done.stdout + done.stderr

    python = tmp_path / "venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--editable", ROOT)
    user = tmp_path / "user.py"
    user.write_text("import isoform\n\nvalue: int = isoform.load\n")
    assert run(python, "-c", "import isoform; print(isoform.__version__)") == "0.1.0\n"
    checker = Path(sys.executable).with_name("basedpyright")
    found = run(checker, "--pythonpath", python, user)
    assert "could not be resolved" not in found
    assert 'is not assignable to declared type "int"' in found, "load has a type"


def test_the_version_is_written_twice_and_agrees() -> None:
    assert isoform.__version__ == SETTINGS["project"]["version"]


@pytest.mark.parametrize("name", isoform.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(isoform, name) is not None
    assert name in dir(isoform)


def test_importing_isoform_imports_nothing_heavy() -> None:
    heavy = ("xdsl", "numpy", "onnx", "egglog", "llvmlite", "sympy", "z3", "rich")
    code = f"import isoform, sys; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_wheel_holds_the_packages_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "source"
    hidden = shutil.ignore_patterns(".[!p]*", ".pytest*", "__pycache__", "*.egg-info", "build")
    shutil.copytree(ROOT, source, ignore=hidden, symlinks=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", str(source)]
    subprocess.run([*command, "--wheel-dir", str(tmp_path)], check=True)
    (wheel,) = tmp_path.glob("isoform-*.whl")
    shipped = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    code = [path for folder in package_folders() for path in (ROOT / folder).glob("*.py")]
    rules = (ROOT / "passes").rglob("*.rules")
    shim = (ROOT / "testing" / "cuda_emulator" / "shim").iterdir()
    exports = (ROOT / "compiler" / "zoo" / "exports").iterdir()
    stubs = (ROOT / "dialects").glob("*.pyi")
    page = ROOT / "compiler" / "reports" / "view"
    parts = [path for kind in ("html", "css", "js", "txt") for path in page.glob(f"*.{kind}")]
    examples = [p for p in (ROOT / COPIED).iterdir() if p.suffix in (".py", ".rules")]
    data = (*rules, *shim, *exports, *stubs, *parts, *examples)
    expected = {str("isoform" / path.relative_to(ROOT)) for path in (*code, *data)}
    assert shipped == {*expected, "isoform/py.typed"}


def test_a_program_that_is_no_onnx_is_compiled_without_onnx(tmp_path: Path) -> None:
    """It takes 20 MB and a third of a second to load."""
    heavy = ["onnx", "onnxruntime", "sympy", "sklearn", "torch"]
    code = (
        "import isoform, sys; isoform.compile(isoform.load('zoo:fsrcnn')); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "ISOFORM_CACHE": str(tmp_path), "ISOFORM_DEBUG": ""},
    )
    assert run.stdout.strip() == "[]"
