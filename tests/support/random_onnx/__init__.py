"""Random ONNX models, written apart from isoform: nothing here imports it.

    case = random_model(seed=7)
    case.model, case.inputs        what to run
    case.difference(found)         None, or the first output position that rounding does not explain

A model is grown node by node. Each node is run by onnxruntime, without optimisation, on the values
drawn so far: a node that onnxruntime refuses is left out, so every model is valid there. Beside its
value each tensor carries two noisy twins, computed from noisy operands: how far they stray is how
much rounding may matter, and an integer on which they disagree is not taken.
"""

from support.random_onnx.case import Case, Difference
from support.random_onnx.model import random_model

__all__ = ["Case", "Difference", "random_model"]
