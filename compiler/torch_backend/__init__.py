"""PyTorch: the backend of torch.compile, exported programs, and equality of modules.

Only this folder (and the ONNX export in `frontends/torch_export.py`) imports torch. `isoform.torch`
is this package; importing it needs torch.
"""

from .backend import isoform as backend

__all__ = ["backend"]
