"""Scopes to kernels: library kernels (table.py), what they take (match.py), the pass."""

from .convert import AlgebraToKernel

__all__ = ["AlgebraToKernel"]
