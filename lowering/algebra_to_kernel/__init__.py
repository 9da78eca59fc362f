"""Scopes to kernels: operator matching by templates (match.py), conversion (convert.py)."""

from .convert import AlgebraToKernel

__all__ = ["AlgebraToKernel"]
