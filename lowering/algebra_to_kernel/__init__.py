"""Scopes to kernels: the table of library kernels, their matchers, and the pass."""

from .convert import AlgebraToKernel

__all__ = ["AlgebraToKernel"]
