"""The expressions that the generaliser may use: for attributes of right sides, and as conditions.

Both are small fixed families over extents and attribute variables; which member is meant is decided
by instances, in generalise.py. More general first: the first that is right is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

from ..conditions import evaluate
from ..instances import Bindings, attribute_names
from ..rule import AttrAtom, AttrValue, AttrVar, Rule, Size, variables_of

_MAX_PER_NUMBER = 18
_COUNTS = ("groups", "channels", "sizes", "shape", "size")
"""Attributes that count elements, as extents do: only these are compared or computed with them."""
_SPECIAL = {"groups": (1,), "strides": (1,), "dilations": (1,), "pads": (0, 1), "kernel": (1,)}
"""Values at which a rule may hold that holds at no other."""


def atoms_for(name: str, value: AttrValue, rule: Rule, base: Bindings) -> list[AttrValue]:
    """What an attribute of the right side could be in general: all have its value at the base."""
    found: list[AttrValue] = list(_same_variables(name, value, rule, base))
    if name == "axis" and isinstance(value, int) and not isinstance(value, bool):
        return [*found, *_axes(value, rule, base), value]
    if name in ("pads", "kernel", "strides", "dilations"):
        return [*found, *_shifted(name, value, rule, base), value]
    if isinstance(value, tuple):
        return [*found, value]
    return list(dict.fromkeys([*found, *numbers_for(name, value, rule, base)]))


def _same_variables(name: str, value: AttrValue, rule: Rule, base: Bindings) -> Iterator[AttrVar]:
    """Variables of the left side that stand for the same attribute and have this value."""
    for variable, attribute in attribute_names(rule.left).items():
        if attribute == name and base[variable] == value:
            yield AttrVar(variable)


def _axes(value: int, rule: Rule, base: Bindings) -> Iterator[Size]:
    """The axis counted from the end; images have one rank, so theirs stay as they are."""
    names = variables_of(rule.left)
    rank = max(len(base[name]) for name in names)
    if rank == 4:
        return
    first = next(name for name in names if len(base[name]) == rank)
    yield Size(f"{first}.rank - {rank - value}")


def _shifted(name: str, value: AttrValue, rule: Rule, base: Bindings) -> Iterator[AttrValue]:
    """A variable of the left side with a constant added to each number."""
    if not isinstance(value, tuple):
        return
    for variable, attribute in attribute_names(rule.left).items():
        known = base[variable]
        if attribute != name or len(known) != len(value) or known == value:
            continue
        steps = [int(a) - b for a, b in zip(value, known, strict=True)]  # pyright: ignore
        yield tuple(
            Size(f"{variable}[{k}] {'+' if step >= 0 else '-'} {abs(step)}")
            for k, step in enumerate(steps)
        )


def numbers_for(name: str, value: AttrValue, rule: Rule, base: Bindings) -> list[AttrAtom]:
    """Expressions of one whole number, simplest first."""
    if isinstance(value, bool | str | float | tuple):
        return [value] if not isinstance(value, tuple) else []
    extents = [f"{v}.shape[{k}]" for v in variables_of(rule.left) for k in _positions(base[v])]
    given = list(_attribute_numbers(rule, base, _COUNTS if name in _COUNTS else (name,)))
    axes = [v for v, attribute in attribute_names(rule.left).items() if attribute == "axis"]
    names = variables_of(rule.left)
    along = [f"{v}.shape[{a}]" for v in names for a in axes if base[a] < len(base[v])]
    extents = [*along, *extents]
    if name == "groups":
        groups = [v for v, a in attribute_names(rule.left).items() if a in ("groups", "channels")]
        texts = [*groups, *_binary(groups, "+"), *(f"2 * {g}" for g in groups)]
        texts += [*(f"{g} // 2" for g in groups), *extents]
        texts += _binary(extents, "//")
    else:
        sums = _binary(extents, "+") if name in ("sizes", "shape", "channels", "size") else []
        sums += [f"{g} + {e}" for e in along for g in given]
        sums += [f"{e} - {g}" for e in along for g in given] if name == "sizes" else []
        sums += [f"2 * {e}" for e in extents] if name == "shape" else []
        texts = [*given, *extents, *sums, *(f"{e} * {g}" for e in extents for g in given)]
    right = [text for text in texts if _value(text, base) == value]
    atoms: list[AttrAtom] = [Size(text) for text in right[:_MAX_PER_NUMBER]]
    return [*atoms, value] if isinstance(value, int) else atoms


def _positions(shape: tuple[int, ...]) -> list[int]:
    """Dims of a shape; those of a matrix from the end, so that dims in front change nothing."""
    return [-1, -2] if len(shape) == 2 else list(range(len(shape)))


def _attribute_numbers(
    rule: Rule, base: Bindings, names: Sequence[str] | None = None
) -> Iterator[str]:
    for variable, attribute in attribute_names(rule.left).items():
        if names is not None and attribute not in names:
            continue
        known = base[variable]
        if isinstance(known, tuple):
            yield from (f"{variable}[{k}]" for k, n in enumerate(known) if isinstance(n, int))
        elif isinstance(known, int) and not isinstance(known, bool):
            yield variable


def _binary(texts: list[str], sign: str) -> list[str]:
    pairs = combinations(texts, 2) if sign == "+" else product(texts, repeat=2)
    return [f"{a} {sign} {b}" for a, b in pairs if a != b]


def _value(text: str, base: Bindings) -> object:
    return evaluate(text, base) if "// 0" not in text else None


def conditions_for(rule: Rule, base: Bindings) -> list[str]:
    """Every condition of the families, simplest first."""
    names = variables_of(rule.left)
    extents = [f"{v}.shape[{k}]" for v in names for k in range(len(base[v]))]
    ends = [f"{v}.shape[-{k}]" for v in names for k in (1, 2) if len(base[v]) >= k]
    attributes = attribute_names(rule.left)
    return [
        *_axis_conditions(rule, base),
        *(f"{a} == {b}" for a, b in combinations(ends, 2)),
        *(f"{a} == {b}" for a, b in combinations(extents, 2)),
        *(f"{a} == {b}" for a, b in combinations(attributes, 2) if _alike(attributes, a, b)),
        *_attribute_conditions(rule, base),
        *(f"{a} == {b}" for a in _attribute_numbers(rule, base, _COUNTS) for b in extents),
        *_balances(rule, base, extents),
        *(f"{v}.rank == {len(base[v])}" for v in names),
        *(f"{v}.rank >= {len(base[v])}" for v in names),
        *(f"{e} == 1" for e in extents),
    ]


def _alike(attributes: Mapping[str, str], a: str, b: str) -> bool:
    """Whether two variables stand for one attribute, or both for one count."""
    single = ("groups", "channels", "size")
    return attributes[a] == attributes[b] or (attributes[a] in single and attributes[b] in single)


def _axis_conditions(rule: Rule, base: Bindings) -> Iterator[str]:
    names = variables_of(rule.left)
    first = max(names, key=lambda name: len(base[name])) if names else ""
    for variable, attribute in attribute_names(rule.left).items():
        if attribute == "axis":
            yield from (f"{variable} == {first}.rank - {k}" for k in (1, 2))
            yield from (f"{variable} == {k}" for k in range(4))
            yield from (f"{variable} != {first}.rank - {k}" for k in (1, 2))
            yield from (f"{variable} < {first}.rank - {k}" for k in (1, 2))
            yield from (f"{variable} != {k}" for k in range(4))
            yield from (f"{variable} >= {k}" for k in (1, 2))


def _attribute_conditions(rule: Rule, base: Bindings) -> Iterator[str]:
    """Attributes at special values: no stride, no pads, one group, windows of odd size."""
    for name, values in _SPECIAL.items():
        texts = list(_attribute_numbers(rule, base, (name,)))
        yield from (f"{text} == {value}" for text in texts for value in values)
    attributes = attribute_names(rule.left)
    deep = [v for v in variables_of(rule.left) if len(base[v]) == 4]
    kernels = [f"{v}.shape[{k}]" for v in deep for k in (2, 3)]
    kernels += [f"{v}[{k}]" for v, a in attributes.items() if a == "kernel" for k in range(2)]
    for variable, attribute in attributes.items():
        if attribute == "pads":
            yield from (f"2 * {variable}[{k}] == {e} - 1" for k, e in product(range(4), kernels))
        if attribute == "axis":
            others = [v for v, a in attributes.items() if a == "axis" and v != variable]
            yield from (f"{variable} == {o} + 1" for o in others)
            yield from (f"{variable} != {o}" for o in others)


def _balances(rule: Rule, base: Bindings, extents: list[str]) -> Iterator[str]:
    """Equal ratios of extents and groups: as many channels a group here as there."""
    groups = [v for v, a in attribute_names(rule.left).items() if a == "groups"]
    for (g, h), (a, b) in product(combinations(groups, 2), product(extents, repeat=2)):
        if a != b:
            yield f"{a} * {h} == {b} * {g}"
    for g, e in product(groups, extents):
        yield f"{e} % {g} == 0"
