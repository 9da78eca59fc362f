"""Meanings of ONNX ops where onnx.reference departs from the specification.

A kernel takes a `NodeCall` and returns all results in order. It follows the specification's text
and uses numpy alone. `tests/onnx/test_random_nodes.py` compares each with onnxruntime.
"""

from __future__ import annotations

from collections.abc import Mapping

from .call import Kernel, NodeCall
from .indexing import KERNELS as INDEXING
from .learners import KERNELS as LEARNERS
from .moves import KERNELS as MOVES
from .numbers import KERNELS as NUMBERS
from .pools import KERNELS as POOLS
from .quantised import KERNELS as QUANTISED
from .recurrent import KERNELS as RECURRENT
from .sampling import KERNELS as SAMPLING
from .words import KERNELS as WORDS

KERNELS: Mapping[str, Kernel] = {
    **INDEXING,
    **MOVES,
    **NUMBERS,
    **POOLS,
    **QUANTISED,
    **RECURRENT,
    **SAMPLING,
    **WORDS,
}

DOMAINS: Mapping[str, Mapping[str, Kernel]] = {"": KERNELS, "ai.onnx.ml": LEARNERS}

__all__ = ["DOMAINS", "KERNELS", "Kernel", "NodeCall"]
