"""Record each pattern rewrite when it begins: the rule that makes it and the op it starts at."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ...dialects.program import where


@dataclass(frozen=True)
class Rewrite:
    """One rewrite; `rule` is empty where the pass itself made it, without a pattern."""

    rule: str
    place: str


class RewriteRecorder:
    """An observer (rewrite_limit.py) that records rewrites.

    Attributes:
        all: the rewrites of earlier passes, stored by `after`.
    """

    def __init__(self) -> None:
        self.all: list[Rewrite] = []
        self._done: list[Rewrite] = []

    def __call__(self, number: int, rewriter: PatternRewriter) -> None:
        self._done.append(describe(rewriter))

    def take(self) -> list[Rewrite]:
        """The rewrites since the last call."""
        done, self._done = self._done, []
        return done

    def after(self, pass_name: str) -> None:
        """Attribute the rewrites since the last call to a pass; one without any is one entry."""
        self.all += named(pass_name, self.take()) or [Rewrite(pass_name, "main")]


def named(pass_name: str, rewrites: Iterable[Rewrite]) -> list[Rewrite]:
    """Rewrites with the pass's name before the rule's."""
    return [Rewrite(f"{pass_name}/{r.rule}" if r.rule else pass_name, r.place) for r in rewrites]


def describe(rewriter: PatternRewriter) -> Rewrite:
    """The rewrite that a rewriter has just begun."""
    op = rewriter._current_operation  # pyright: ignore[reportPrivateUsage]
    return Rewrite(_rule(sys._getframe(1)), "main" if op is None else where(op))  # pyright: ignore[reportPrivateUsage]


def _rule(frame: FrameType | None) -> str:
    """The pattern whose method is running: xDSL passes the rewriter the place, not the pattern."""
    while frame is not None:
        pattern = frame.f_locals.get("self")
        if isinstance(pattern, RewritePattern):
            return _name(pattern)
        frame = frame.f_back
    return ""


def _name(pattern: RewritePattern) -> str:
    """The name of the rule that a pattern applies, or of its class."""
    for attribute in ("rule", "simplify"):
        found = getattr(pattern, attribute, None)
        text = getattr(found, "name", None) or getattr(found, "__name__", None) or found
        if isinstance(text, str):
            return text
    return type(pattern).__name__
