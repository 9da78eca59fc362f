"""Everything that is registered loads, explains itself and has its lit tests."""

import inspect
import re
from pathlib import Path

import pytest
from xdsl.ir import Dialect
from xdsl.passes import ModulePass

from isoform.compiler.registry import DIALECTS, PASSES

ROOT = Path(__file__).resolve().parents[2]
LIT = ROOT / "lit_tests"


@pytest.mark.parametrize(("name", "factory"), DIALECTS, ids=[name for name, _ in DIALECTS])
def test_a_dialect_loads_and_has_its_lit_tests(name: str, factory) -> None:
    dialect = factory()
    assert isinstance(dialect, Dialect)
    assert dialect.name == name
    for file in ("ops.mlir", "invalid.mlir"):
        assert list(LIT.rglob(f"{name}/{file}")), f"lit_tests/{name}/{file} is missing"


@pytest.mark.parametrize(("name", "factory"), PASSES, ids=[name for name, _ in PASSES])
def test_a_pass_loads_and_shows_ir_before_and_after(name: str, factory) -> None:
    cls = factory()
    assert issubclass(cls, ModulePass)
    assert cls.name == name
    text = inspect.cleandoc(cls.__doc__ or "")
    summary = text.partition("\n")[0]
    assert summary, "a docstring starts with a line for --list-passes"
    assert not summary.startswith(f"{cls.__name__}("), "this docstring is dataclass's, write one"
    assert re.search("before", text, re.IGNORECASE), "IR before is missing"
    assert re.search("after", text, re.IGNORECASE), "IR after is missing"
    assert len(re.findall(r"^ .*%\w", text, re.MULTILINE)) >= 2, "the docstring shows no IR"


@pytest.mark.parametrize("name", [name for name, _ in PASSES])
def test_a_pass_has_a_lit_test(name: str) -> None:
    stems = (name, name.replace("-", "_"))
    assert any(list(LIT.rglob(f"{stem}*.mlir")) for stem in stems), "its lit test is missing"
