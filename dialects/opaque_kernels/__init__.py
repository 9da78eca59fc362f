"""Meanings of ONNX ops where onnx.reference departs from the specification.

A kernel here is a numpy function: it takes a `NodeCall` and returns all results in order. It
follows the specification's text and uses numpy alone. `tests/onnx/test_random_nodes.py` compares
each with onnxruntime.
"""

from __future__ import annotations

from collections.abc import Mapping

from .call import Kernel, NodeCall
from .indexing import KERNELS as INDEXING
from .learners import KERNELS as LEARNERS
from .mel_weights import KERNELS as MEL_WEIGHTS
from .pools import KERNELS as POOLS
from .quantised import KERNELS as QUANTISED
from .recurrent import KERNELS as RECURRENT
from .reductions import KERNELS as REDUCTIONS
from .sampling import KERNELS as SAMPLING
from .slices_pads_norms import KERNELS as SLICES_PADS_NORMS
from .tfidf import KERNELS as TFIDF

KERNELS: Mapping[str, Kernel] = {
    **INDEXING,
    **SLICES_PADS_NORMS,
    **REDUCTIONS,
    **MEL_WEIGHTS,
    **POOLS,
    **QUANTISED,
    **RECURRENT,
    **SAMPLING,
    **TFIDF,
}

DOMAINS: Mapping[str, Mapping[str, Kernel]] = {"": KERNELS, "ai.onnx.ml": LEARNERS}

__all__ = ["DOMAINS", "KERNELS", "Kernel", "NodeCall"]
