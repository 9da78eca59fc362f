"""Choose how each kernel runs: alternatives as data, measured one against the other."""

from .tune import Tune

__all__ = ["Tune"]
