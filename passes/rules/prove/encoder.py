"""Encode the terms of rules for the provers: each op is a function of its operands and attributes.

`name_of` names the functions. Each result of a split is a separate function (`split.0`, `split.1`),
and so is an op with three operands: `conv/3` is a convolution with a bias. The sizes of a split are
encoded as two numbers, other lists as values of the prover's sort of lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any

from ....dialects.graph.base import property_order
from ..conditions import names_in
from ..exact import graph_ops
from ..rule import CONSTANTS, AttrVar, Node, Out, Term, Var
from ..terms import root_node

_OF_CONSTANTS = {
    "ones": ("shape",),
    "identity_matrix": ("size",),
    "identity_kernel": ("channels", "kernel"),
    "pool_kernel": ("channels", "kernel"),
    "pair_mask": ("groups", "shape"),
}


_OF_LISTS = ("slice",)


@cache
def attributes_of(op: str) -> tuple[str, ...]:
    """Return the names of an op's or a constant's attributes, in a fixed order."""
    if op in _OF_CONSTANTS:
        return _OF_CONSTANTS[op]
    return ("axis", "sizes") if op == "split" else tuple(property_order(graph_ops()[op]))


def name_of(term: Node | Out) -> str:
    """Return the name of an op's function; `.k` marks result k, `/n` an op with n > 2 operands."""
    if isinstance(term, Out):
        return f"{term.node.op}.{term.index}"
    return f"{term.op}/{len(term.operands)}" if len(term.operands) > 2 else term.op


def signature(key: str, facts: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    """Return a function's op, the operands that its facts read (letters), and its attributes."""
    op = key.split(".")[0].split("/")[0]
    read = {name for text in facts for name in names_in(text)}
    return op, "abc"[: sum(name in read for name in "abc")], attributes_of(op)


class NotEncodedError(Exception):
    """A rule computes with lists, or has an op whose lists have any length: no prover takes it."""


class TermEncoder(ABC):
    """Encodes the terms of one rule as terms of a prover."""

    @abstractmethod
    def variable(self, name: str) -> Any:
        """Return a tensor variable."""

    @abstractmethod
    def pair(self, name: str) -> Sequence[Any]:
        """Return the two numbers that a variable for the sizes of a split stands for."""

    @abstractmethod
    def value(self, value: Any) -> Any:
        """An attribute that is not a list, or a part of one."""

    @abstractmethod
    def listed(self, parts: Sequence[Any]) -> Any:
        """Return a list of numbers."""

    @abstractmethod
    def call(self, name: str, operands: Sequence[Any], values: Sequence[Any]) -> Any:
        """An op's function on operands and attributes."""

    def term(self, term: Term) -> Any:
        """A term of the prover."""
        if isinstance(term, Var):
            return self.variable(term.name)
        node = root_node(term)
        return self.call(name_of(term), [*map(self.term, node.operands)], self._values(node))

    def _values(self, node: Node) -> list[Any]:
        given = dict(node.attributes)
        if node.op in _OF_LISTS:
            raise NotEncodedError(node.op)
        if node.op == "split":
            sizes = given["sizes"]
            is_variable = isinstance(sizes, AttrVar)
            sizes_encoded = self.pair(sizes.name) if is_variable else self._parts(sizes)
            return [self.value(given["axis"]), *sizes_encoded]
        defaults = {} if node.op in CONSTANTS else graph_ops()[node.op].DEFAULTS
        return [self._value(given.get(n, defaults.get(n))) for n in attributes_of(node.op)]

    def _value(self, value: Any) -> Any:
        return self.listed(self._parts(value)) if isinstance(value, tuple) else self.value(value)

    def _parts(self, parts: Any) -> list[Any]:
        return [self.value(part) for part in parts]
