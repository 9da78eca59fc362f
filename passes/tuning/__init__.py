"""Choose the implementation of each kernel: alternatives as data, measured against each other."""

from .tune import Tune

__all__ = ["Tune"]
