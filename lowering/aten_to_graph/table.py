"""Every ATen op with a form in the graph dialect: op and overload -> converter."""

from __future__ import annotations

from . import (
    activations,
    contraction,
    creation,
    elementwise,
    indexing,
    pooling,
    reduction,
    scattering,
    shaping,
)
from .node import Converter

TABLE: dict[str, Converter] = {
    **elementwise.TABLE,
    **activations.TABLE,
    **shaping.TABLE,
    **contraction.TABLE,
    **reduction.TABLE,
    **pooling.TABLE,
    **indexing.TABLE,
    **scattering.TABLE,
    **creation.TABLE,
}
