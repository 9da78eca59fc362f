"""The context of a pass that also needs the program's weights."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context

from .errors import UserError
from .weights import Weights


@dataclass
class WeightContext(Context):
    """xDSL's context with the store in which `graph.weight @name` finds its data."""

    weights: Weights = field(default_factory=Weights)

    def clone(self) -> WeightContext:
        """A context with the same dialects; the weights are shared."""
        copy = super().clone()
        return WeightContext(*(getattr(copy, name) for name in _FIELDS), weights=self.weights)


def with_weights(context: Context, weights: Weights) -> WeightContext:
    """The context with these weights beside its dialects, which both share."""
    return WeightContext(*(getattr(context, name) for name in _FIELDS), weights=weights)


_FIELDS = tuple(Context.__dataclass_fields__)


def weights_of(context: Context) -> Weights:
    """The weights a pass may read.

    Raises:
        UserError: the context has no weights, as for IR text without its file of weights.
    """
    if isinstance(context, WeightContext):
        return context.weights
    raise UserError(
        "this pass needs the weights, and none were given",
        hint="isoform-opt --weights FILE.safetensors; in Python run it with a WeightContext",
    )
