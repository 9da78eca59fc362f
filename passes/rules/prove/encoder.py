"""What both provers make of a rule: each op a function of its operands and attributes.

Results of a split are functions of their own, and so is a conv with a bias. The sizes of a split
are two numbers; other lists are values of a sort of their own.
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
    """Names of an op's attributes, in a fixed order; a constant's are those that it takes."""
    if op in _OF_CONSTANTS:
        return _OF_CONSTANTS[op]
    return ("axis", "sizes") if op == "split" else tuple(property_order(graph_ops()[op]))


def name_of(term: Node | Out) -> str:
    """The name of an op's function."""
    if isinstance(term, Out):
        return f"{term.node.op}.{term.index}"
    return f"{term.op}/{len(term.operands)}" if len(term.operands) > 2 else term.op


def signature(key: str, facts: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    """Of a function that facts are about: its op, the names of its operands and attributes."""
    op = key.split(".")[0].split("/")[0]
    read = {name for text in facts for name in names_in(text)}
    return op, "abc"[: sum(name in read for name in "abc")], attributes_of(op)


class NotEncodedError(Exception):
    """A rule computes with lists, or has an op whose lists have any length: none proves it."""


class TermEncoder(ABC):
    """Terms of one rule as terms of a prover."""

    @abstractmethod
    def variable(self, name: str) -> Any:
        """A tensor variable."""

    @abstractmethod
    def pair(self, name: str) -> Sequence[Any]:
        """The two numbers that a variable for the sizes of a split stands for."""

    @abstractmethod
    def value(self, value: Any) -> Any:
        """An attribute that is not a list, or a part of one."""

    @abstractmethod
    def listed(self, parts: Sequence[Any]) -> Any:
        """A list of numbers."""

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
            whole = isinstance(sizes, AttrVar)
            parts = self.pair(sizes.name) if whole else self._parts(sizes)
            return [self.value(given["axis"]), *parts]
        defaults = {} if node.op in CONSTANTS else graph_ops()[node.op].DEFAULTS
        return [self._value(given.get(n, defaults.get(n))) for n in attributes_of(node.op)]

    def _value(self, value: Any) -> Any:
        return self.listed(self._parts(value)) if isinstance(value, tuple) else self.value(value)

    def _parts(self, parts: Any) -> list[Any]:
        return [self.value(part) for part in parts]
