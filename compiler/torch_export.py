"""Export a torch module to ONNX; torch is imported here only."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from ..dialects.errors import UserError, one_line


def export_module(module: Any, args: Any, path: Path) -> None:
    """Write `module`, in evaluation mode and for the shapes of `args`, as an ONNX file.

    Raises:
        UserError: torch is not installed, or refuses to export.
    """
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError("torch is not installed", hint="pip install 'isoform[torch]'") from error
    inputs = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    training = module.training
    module.eval()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            # The exporter without onnxscript is deprecated; it needs nothing that torch lacks.
            warnings.simplefilter("ignore")
            torch.onnx.export(module, inputs, str(path), opset_version=17, dynamo=False)
    except Exception as error:
        message = one_line(str(error))[:300]
        raise UserError(
            f"torch cannot export it: {message}", where=type(module).__name__
        ) from error
    finally:
        module.train(training)
