"""Scopes to kernels: the table of library kernels, their matchers, and the pass.

Whether a scope is a contraction or a convolution at all, in any order of its dims, is recognised in
dialects/contraction.py and dialects/convolution.py; contraction_attr.py there keeps the answer.
"""

from .convert import AlgebraToKernel

__all__ = ["AlgebraToKernel"]
