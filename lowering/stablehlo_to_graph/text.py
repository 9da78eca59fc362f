"""StableHLO text as plain data: functions, blocks and ops, in the generic or their own syntax.

Most ops' own syntax is operands, words and `key = value` in some order, and then types: one reader
takes them all. `while`, `reduce`, `slice` and a convolution's dims have a reader each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...dialects.types import Tensor
from .tokens import Place, Tokens

# An op, or a module as jax writes it even where it has no op.
_STABLEHLO = re.compile(
    r'^[ \t]*(?:%[^=\n]*= *)?"?(?:stablehlo|chlo|mhlo)\.[a-z]|^module\b[^\n]*\b(?:mhlo|jax)\.',
    re.MULTILINE,
)
_LOCATION = re.compile(r"^#(loc\d*) = loc\((.*)\)$", re.MULTILINE)


def is_stablehlo(text: str) -> bool:
    """Whether a text has an op of StableHLO, or a module that jax wrote."""
    return _STABLEHLO.search(text) is not None


@dataclass
class HloArgument:
    """A value that a block is given: of a function, with the name that its location has."""

    name: str
    type: Tensor
    label: str = ""


@dataclass
class HloBlock:
    """The one block of a region."""

    arguments: list[HloArgument]
    ops: list[HloOp]

    @property
    def results(self) -> Sequence[str]:
        """The values that it returns."""
        return self.ops[-1].operands


@dataclass
class HloOp:
    """An op: `words` are what stands bare in its text, as the direction of a comparison."""

    name: str
    position: int
    operands: list[str] = field(default_factory=list[str])
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    words: list[str] = field(default_factory=list[str])
    regions: list[HloBlock] = field(default_factory=list[HloBlock])
    results: list[str] = field(default_factory=list[str])
    types: list[Tensor] = field(default_factory=list[Tensor])
    location: str = ""


@dataclass
class HloFunction:
    """A function; `labels` are the names that its results have, as far as the text says."""

    name: str
    block: HloBlock
    types: list[Tensor]
    labels: list[str]


def read(text: str, place: Place) -> dict[str, HloFunction]:
    """The functions of a module by name. Raises UserError with line and column."""
    return _Reader(text, place).module()


class _Reader(Tokens):
    def __init__(self, text: str, place: Place) -> None:
        super().__init__(text, place)
        self._locations = dict(_LOCATION.findall(text))

    # --- module and functions ---

    def module(self) -> dict[str, HloFunction]:
        found: dict[str, HloFunction] = {}
        inside = False
        while self.kind != "end":
            if self.kind == "hash":
                self._alias()
            elif self.at("module", "builtin.module") and not inside:
                self.take()
                if self.kind == "symbol":
                    self.take()
                if self.accept("attributes"):
                    self.dictionary()
                self.expect("{")
                inside = True
            elif self.at("func.func"):
                function = self._function()
                found[function.name] = function
            elif inside and self.accept("}"):
                self._location()
                inside = False
            elif self.at("{-#"):
                return found
            else:
                self.fail(f"'{self.peek[:40]}' is not supported outside of a function")
        if inside:
            self.fail("the text ends too early")
        return found

    def _alias(self) -> None:
        name = self.take("hash")
        self.expect("=")
        if self.accept("loc"):
            self.skip_balanced()
        else:
            self.aliases[name] = self.attribute()

    def _function(self) -> HloFunction:
        self.take()
        if self.at("public", "private", "nested"):
            self.take()
        name = self.take("symbol")
        self.expect("(")
        arguments = self.listed(")", self._argument)
        results: list[tuple[Tensor, str]] = []
        if self.accept("->"):
            several = self.accept("(")
            results = self.listed(")", self._result) if several else [(self.type(), "")]
        if self.accept("attributes"):
            self.dictionary()
        block = self._block(arguments)
        self._location()
        types, labels = [t for t, _ in results], [label for _, label in results]
        return HloFunction(name.removeprefix("@").strip('"'), block, types, labels)

    def _result(self) -> tuple[Tensor, str]:
        type_ = self.type()
        known = self.dictionary() if self.at("{") else {}
        return type_, str(known.get("jax.result_info", ""))

    def _argument(self) -> HloArgument:
        name = self.take("value")
        self.expect(":")
        type_ = self.type()
        if self.at("{"):
            self.dictionary()
        return HloArgument(name, type_, self._location())

    def _location(self) -> str:
        """Skip `loc(...)`; returns the name that it gives, if any."""
        if not self.accept("loc"):
            return ""
        text = self.skip_balanced()
        return self._name_of(text[1:-1])

    def _name_of(self, text: str, depth: int = 0) -> str:
        """The name that a location starts with: not a file's, which a line's number follows."""
        if text.startswith("#"):
            return self._name_of(self._locations.get(text[1:], ""), depth + 1) if depth < 9 else ""
        if text.startswith("callsite("):
            return self._name_of(text[9:].split(" at ")[0], depth)
        found = re.match(r'"([^"]*)"(?!:)', text)
        return found[1] if found is not None else ""

    def _block(self, arguments: list[HloArgument]) -> HloBlock:
        self.expect("{")
        if self.kind == "block":
            self.take()
            if self.accept("("):
                arguments = self.listed(")", self._argument)
            self.expect(":")
        ops: list[HloOp] = []
        while not self.accept("}"):
            ops.append(self._op())
        if not ops:
            self.fail("a block without ops")
        return HloBlock(arguments, ops)

    # --- ops ---

    def _op(self) -> HloOp:
        position = self.position
        results = self._results()
        op = HloOp("", position, results=results)
        if self.kind == "string":
            op.name = self.take().strip('"')
            self._generic(op)
        else:
            op.name = self.take("word")
            reader = _OWN.get(op.name)
            if reader is None:
                self._own(op)
            else:
                reader(self, op)
        op.location = self._location()
        if len(op.types) != len(op.results) and op.results:
            self.fail("the number of types is not the number of results", position)
        return op

    def _results(self) -> list[str]:
        names: list[str] = []
        while self.kind == "value":
            name = self.take()
            if self.accept(":"):
                names += [f"{name}#{k}" for k in range(int(self.take("number")))]
            else:
                names.append(name)
            if not self.accept(","):
                self.expect("=")
                break
        return names

    def _generic(self, op: HloOp) -> None:
        self.expect("(")
        op.operands = self.listed(")", lambda: self.take("value"))
        if self.accept("<"):
            op.attributes |= self.dictionary()
            self.expect(">")
        if self.accept("("):
            op.regions = self.listed(")", lambda: self._block([]))
        if self.at("{"):
            op.attributes |= self.dictionary()
        self._signature(op)

    def _signature(self, op: HloOp) -> None:
        """`: (types) -> types`, or `: types`, of which the last one is the result's."""
        self.expect(":")
        several = self.at("(")
        if several and self._texts[self._next + 1] == ")":
            self.take()
            self.take()
            found: list[Tensor] = []
        else:
            found = self.types()
            while not several and self.accept(","):
                found.append(self.type())
        if self.accept("->"):
            found = [] if self._nothing() else self.types()
        elif len(op.results) == 1:
            found = found[-1:]
        op.types = found if op.results else []

    def _nothing(self) -> bool:
        if self.at("(") and self._texts[self._next + 1] == ")":
            self.take()
            self.take()
            return True
        return False

    def _own(self, op: HloOp) -> None:
        """Operands, words, `key = value`, groups of them in parentheses, attributes, and types."""
        depth = 0
        while depth or not (self.at(":", "}") or self._ends(op)):
            if self.kind == "value":
                op.operands.append(self.take())
            elif self.accept("("):
                depth += 1
            elif self.accept(")"):
                depth -= 1
            elif self.accept(","):
                continue
            elif self.at("{"):
                op.attributes |= self.dictionary()
            elif self.kind == "word" and self._texts[self._next + 1] == "=":
                key = self.take()
                self.take()
                op.attributes[key] = self._value()
            else:
                op.words.append(self.attribute())
        if self.at(":"):
            self._signature(op)

    def _ends(self, op: HloOp) -> bool:
        """Whether an op without types has ended."""
        bare = op.name.endswith("return") and self.kind != "value" and not self.at(",")
        return self.at("loc") or bare

    def _value(self) -> Any:
        """A value; two lists with `x` between are a pair."""
        found = self.attribute()
        if not isinstance(found, list) or not self.accept("x"):
            return found
        return found, self.attribute()

    # --- ops with a syntax of their own ---

    def _constant(self, op: HloOp) -> None:
        if self.at("{"):
            self.dictionary()
        if not self.at("dense", "dense_resource"):
            self.fail("a literal `dense<...>` is expected")
        start = self._next
        op.attributes["value"] = self.attribute()
        place, self._next = self._next, start
        while self.kind != "tensor":
            self.take()
        op.types = [self.type()]
        self._next = place

    def _slice(self, op: HloOp) -> None:
        op.operands = [self.take("value")]
        self.expect("[")
        parts = self.listed("]", self._range)
        names = ("start_indices", "limit_indices", "strides")
        for k, name in enumerate(names):
            op.attributes[name] = [part[k] for part in parts]
        if self.at("{"):
            op.attributes |= self.dictionary()
        self._signature(op)

    def _range(self) -> list[int]:
        found = [int(self.take("number"))]
        while self.accept(":"):
            found.append(int(self.take("number")))
        return [*found, 1][:3]

    def _while(self, op: HloOp) -> None:
        self.expect("(")
        pairs = self.listed(")", self._pair)
        op.operands = [value for _, value in pairs]
        types: list[Tensor] = []
        if self.accept(":"):
            types.append(self.type())
            while self.accept(","):
                types.append(self.type())
        if len(types) != len(pairs):
            self.fail("a type for each value is expected")
        if self.accept("attributes"):
            self.dictionary()
        op.types = types if op.results else []
        names = [name for name, _ in pairs]
        for word in ("cond", "do"):
            self.expect(word)
            given = [HloArgument(n, t) for n, t in zip(names, types, strict=True)]
            op.regions.append(self._block(given))

    def _pair(self) -> tuple[str, str]:
        name = self.take("value")
        self.expect("=")
        return name, self.take("value")

    def _reduce(self, op: HloOp) -> None:
        """`(%x init: %c), ... applies OP across dimensions = [..] : types`, or with a reducer."""
        starts: list[str] = []
        self.expect("(")
        while True:
            op.operands.append(self.take("value"))
            self.expect("init")
            self.expect(":")
            starts.append(self.take("value"))
            self.expect(")")
            if not self.accept(","):
                break
            self.expect("(")
        op.operands += starts
        if self.accept("applies"):
            op.words.append(self.take("word"))
        self.expect("across")
        self.expect("dimensions")
        self.expect("=")
        op.attributes["dimensions"] = self.attribute()
        if self.at("{"):
            op.attributes |= self.dictionary()
        self._signature(op)
        if self.accept("reducer"):
            groups: list[list[HloArgument]] = []
            while self.accept("("):
                groups.append(self.listed(")", self._argument))
            both = [[g[0] for g in groups], [g[-1] for g in groups]]
            op.regions = [self._block([*both[0], *both[1]])]

    def _convolution(self, op: HloOp) -> None:
        self.expect("(")
        op.operands = self.listed(")", lambda: self.take("value"))
        while not self.at(":"):
            if self.accept(","):
                continue
            if self.at("{"):
                op.attributes |= self.dictionary()
                continue
            key = self.take("word")
            self.expect("=")
            op.attributes[key] = self.dim_numbers() if key == "dim_numbers" else self.attribute()
        self._signature(op)


_OWN = {
    "stablehlo.constant": _Reader._constant,  # pyright: ignore[reportPrivateUsage]
    "stablehlo.slice": _Reader._slice,  # pyright: ignore[reportPrivateUsage]
    "stablehlo.while": _Reader._while,  # pyright: ignore[reportPrivateUsage]
    "stablehlo.reduce": _Reader._reduce,  # pyright: ignore[reportPrivateUsage]
    "stablehlo.convolution": _Reader._convolution,  # pyright: ignore[reportPrivateUsage]
}

__all__ = ["HloArgument", "HloBlock", "HloFunction", "HloOp", "is_stablehlo", "read"]
