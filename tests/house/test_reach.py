"""The product holds nothing that only tests reach: that stands in `testing/` or `tests/support`."""

import re
import tomllib
from collections.abc import Callable, Iterable

import pytest
from support import import_graph
from support.import_graph import ROOT, files, packages, references


def entry_points() -> set[str]:
    """The package itself, and what pyproject.toml names: commands, and the registry for xDSL."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tables = (project["scripts"], *project["entry-points"].values())
    named = {value for table in tables for value in table.values()}
    return {"", *(re.sub(r"^isoform\.|:.*$", "", value) for value in named)}


def reached(start: Iterable[str], imported: Callable[[str], Iterable[str]]) -> set[str]:
    """What is imported, sooner or later, by the modules of `start`."""
    found: set[str] = set()
    waiting = list(start)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += [*imported(module), *packages(module)]
    return found


def used(module: str) -> set[str]:
    """What a module needs as it runs: what it imports only for types is not among it."""
    needed = {i.module for i in import_graph.imports(module) if i.when != "for types"}
    return {*needed, *references(module)}


def test_every_module_is_reached_from_an_entry_point() -> None:
    alive = reached(entry_points(), used)
    unreached = sorted(m for m in files() if m not in alive and not m.startswith("testing"))
    hint = "only tests use it: move it to testing/ (public) or tests/support"
    assert not unreached, f"{hint}: {', '.join(unreached)}"


def test_the_product_does_not_import_testing() -> None:
    assert not [m for m in reached(entry_points(), used) if m.split(".")[0] == "testing"]


@pytest.mark.parametrize("module", ["passes.fold_constants", "passes.partial.propose"])
def test_what_is_named_in_a_table_is_reached(module: str) -> None:
    assert module in reached(entry_points(), used)
    assert module not in reached(entry_points(), lambda m: used(m) - references(m))


def test_a_module_that_nothing_imports_is_found() -> None:
    alive = reached(entry_points(), lambda m: used(m) - {"passes.cost.flops"})
    assert "passes.cost.flops" in files() and "passes.cost.flops" not in alive
