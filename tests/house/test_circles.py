"""No file imports another that, sooner or later, imports it: not inside functions either."""

from collections.abc import Callable, Iterable, Mapping

import networkx as nx
from support.import_graph import files, imports

# Imports that name a type only, nothing runs, and the reason why that type stands above.
FOR_TYPES = {
    ("dialects.scope_text", "dialects.algebra"): "it prints and parses one op, and the op says so",
    ("lowering.kernel_to_cpu.emit.flow", "lowering.kernel_to_cpu.emit.module"): (
        "a function's lines are written into a module, which hands out such writers"
    ),
}


def circles(imported: Callable[[str], Iterable[str]], modules: Iterable[str]) -> list[list[str]]:
    """Groups of modules that reach each other."""
    graph = nx.DiGraph((m, other) for m in modules for other in imported(m) if other != m)
    return [sorted(found) for found in nx.strongly_connected_components(graph) if len(found) > 1]


def imported(module: str, left_out: Mapping[tuple[str, str], str] = FOR_TYPES) -> set[str]:
    """What a module imports, at whatever time."""
    return {i.module for i in imports(module) if (module, i.module) not in left_out}


def test_no_circle_of_imports() -> None:
    assert circles(imported, files()) == []


def test_imports_that_are_left_out_are_needed_and_for_types_only() -> None:
    for module, other in FOR_TYPES:
        rest = {pair: why for pair, why in FOR_TYPES.items() if pair != (module, other)}
        assert circles(lambda m, rest=rest: imported(m, rest), files())
        assert {i.when for i in imports(module) if i.module == other} == {"for types"}


def test_no_file_imports_the_package_that_it_stands_in() -> None:
    """A package's `__init__` may import its files; no file imports its own package's names."""
    packages = {m for m, path in files().items() if path.name == "__init__.py" and m}
    wrong = [
        f"{module} imports {i.module}"
        for module in files()
        for i in imports(module)
        if i.module in packages and i.module != module and module.startswith(f"{i.module}.")
    ]
    assert not wrong, "\n".join(wrong)


def test_an_import_inside_a_function_closes_a_circle() -> None:
    late = {"passes.cost.cost_file": {"passes.cost.costs"}}  # which imports it
    found = circles(lambda m: {*imported(m), *late.get(m, ())}, files())
    assert found == [["passes.cost.cost_file", "passes.cost.costs"]]
