"""Print quasi-affine indices as C: `2 * h + r - 1`, `(h + r) / 2`, `hw % 56`.

C divides towards zero, so a multiple of the divisor is added to a numerator that may be negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.index import FloorDiv, Index, normalise, range_of

INT_LIMIT = 1 << 31


@dataclass(frozen=True)
class Iterators:
    """The iterators of indices: a C expression and the extent of each, by number.

    A name may be a literal (`0` for an iterator that does not move) or any atom of C.
    """

    names: tuple[str, ...]
    extents: tuple[int, ...]

    def text(self, index: Index) -> str:
        """The index as a C sum, without brackets around it."""
        return _sum(normalise(index, self.extents), self)

    def bracketed(self, index: Index) -> str:
        """The index as an operand of a product or comparison."""
        return _atomic(self.text(index))

    def fits_int(self, index: Index) -> bool:
        """Whether every part of the printed expression fits in 32 bits."""
        return _reach(index, self.extents) < INT_LIMIT

    def with_names(self, names: dict[int, str]) -> Iterators:
        """The same iterators, some with other names."""
        return Iterators(
            tuple(names.get(k, name) for k, name in enumerate(self.names)), self.extents
        )


def _reach(index: Index, extents: Sequence[int]) -> int:
    """A bound of the absolute value of every partial sum."""
    total = abs(index.constant)
    for atom, coefficient in index.terms:
        if isinstance(atom, int):
            total += abs(coefficient) * max(1, extents[atom] - 1)
        else:
            total += abs(coefficient) * _reach(atom.numerator, extents)
    return total


def _sum(index: Index, over: Iterators) -> str:
    index, remainders = _remainders(index)
    parts: list[tuple[str, int]] = []
    for atom, coefficient in index.terms:
        if isinstance(atom, int):
            parts.append((over.names[atom], coefficient))
        else:
            parts.append((_quotient(atom, over), coefficient))
    parts += [(_remainder(atom, over), coefficient) for atom, coefficient in remainders]
    return _join(parts, index.constant)


def _join(parts: Sequence[tuple[str, int]], constant: int) -> str:
    text = ""
    # Subtracted terms come last, so that a sum does not begin with a sign; else the longest step
    # first.
    ordered = sorted(parts, key=lambda part: (part[1] < 0, -abs(part[1])))
    for name, coefficient in ordered:
        if name == "0":
            continue
        product = name if abs(coefficient) == 1 else f"{abs(coefficient)} * {_factor(name)}"
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {product}" if text else (f"-{product}" if coefficient < 0 else product)
    if constant or not text:
        sign = "-" if constant < 0 else "+"
        text = f"{text} {sign} {abs(constant)}" if text else str(constant)
    return text


def _remainders(index: Index) -> tuple[Index, list[tuple[FloorDiv, int]]]:
    """Pull `e - d * (e // d)` out of a sum, as (floor atom, coefficient of e mod d)."""
    found: list[tuple[FloorDiv, int]] = []
    for atom, coefficient in index.terms:
        if not isinstance(atom, FloorDiv) or coefficient % atom.divisor:
            continue
        times = -(coefficient // atom.divisor)
        rest = index - atom.numerator * times - Index(0, ((atom, coefficient),))
        kept = {a for a, _ in rest.terms}
        gone = {a for a, _ in atom.numerator.terms}
        if not kept & gone:
            index = rest
            found.append((atom, times))
    return index, found


def _lifted(atom: FloorDiv, over: Iterators) -> tuple[str, int]:
    """(text of a numerator that is never negative, the excess of the quotient)."""
    low = range_of(atom.numerator, over.extents)[0]
    lift = max(0, -(low // atom.divisor))
    return _atomic(over.text(atom.numerator + lift * atom.divisor)), lift


def _quotient(atom: FloorDiv, over: Iterators) -> str:
    numerator, lift = _lifted(atom, over)
    quotient = f"{numerator} / {atom.divisor}"
    return f"({quotient} - {lift})" if lift else quotient


def _remainder(atom: FloorDiv, over: Iterators) -> str:
    numerator, _ = _lifted(atom, over)
    return f"{numerator} % {atom.divisor}"


def _atomic(text: str) -> str:
    return f"({text})" if " " in text or text.startswith("-") else text


def _factor(text: str) -> str:
    """As right operand of `*`: quotients and remainders too need brackets."""
    whole = text.startswith("(") and text.endswith(")") and text.find(")") == len(text) - 1
    return text if whole or " " not in text else f"({text})"


def decode(flat: str, iterators: Sequence[tuple[str, int]], kind: str) -> list[str]:
    """Lines that split a flat number into iterators, the last one fastest: `const int w = ...`."""
    moving = [(name, n) for name, n in iterators if n != 1]
    lines = [f"const {kind} {name} = 0;" for name, n in iterators if n == 1]
    stride = 1
    for position, (name, n) in reversed(list(enumerate(moving))):
        value = flat if stride == 1 else f"{flat} / {stride}"
        if position:
            value = f"{value} % {n}"
        lines.append(f"const {kind} {name} = {value};")
        stride *= n
    return lines
