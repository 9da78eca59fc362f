"""What a release is made of: sdist, wheel, changelog, citation."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
BUILD = importlib.util.find_spec("build")
PROGRAM = """
import numpy as np
import isoform
from isoform.compiler import zoo

b = isoform.GraphBuilder()
x = b.input("x", (2, 3))
b.output("y", b.relu(b.add(x, x)))
assert isoform.compile(b.build())(x=np.ones((2, 3), np.float32))["y"].tolist() == [[2.0] * 3] * 2
assert isoform.optimize(isoform.load("zoo:dcgan"), target="h100", budget=1).report["cost"]
print(isoform.__file__)
"""


def test_the_changelog_has_the_version_and_what_comes_after() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1].split()[0] == VERSION


def test_the_citation_names_the_version_and_the_licence() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    entries = dict(re.findall(r"^([\w-]+): (.+)$", text, re.MULTILINE))
    assert entries["version"] == VERSION
    assert entries["license"] == project["license"]
    assert {"cff-version", "message", "title"} <= entries.keys()


@pytest.mark.network  # the build fetches setuptools
@pytest.mark.skipif(BUILD is None or BUILD.origin is None, reason="no build (pip install build)")
def test_sdist_and_wheel_are_built_and_the_wheel_works_alone(tmp_path: Path) -> None:
    """The wheel comes from the sdist; it runs in a venv of its own, away from this checkout."""
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, capture_output=True, text=True, env=clean, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, "-m", "build", "--outdir", tmp_path / "dist", ROOT)
    (wheel,) = (tmp_path / "dist").glob(f"isoform-{VERSION}-*.whl")
    assert (tmp_path / "dist" / f"isoform-{VERSION}.tar.gz").is_file()
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    run(home / "bin" / "pip", "install", "--quiet", "--no-index", "--no-deps", wheel)
    (packages,) = home.glob("lib/python*/site-packages")
    # The dependencies are those that are installed here; .pth files in that folder are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert run(home / "bin" / "isoform", "--version").split() == ["isoform", VERSION]
    assert run(home / "bin" / "isoform-opt", "--list-passes")
    assert run(home / "bin" / "python", "-c", PROGRAM).strip().startswith(str(packages))
