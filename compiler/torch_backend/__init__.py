"""PyTorch: the backend of torch.compile, exported programs, and equality of modules.

`isoform.torch` is this package. Importing it needs torch, which this folder imports (and, where it
is asked for, `frontends/torch_export.py` and `peers/`).
"""

from .dynamo_backend import isoform as backend
from .verification import verify

__all__ = ["backend", "verify"]
