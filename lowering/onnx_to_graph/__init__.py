"""Import ONNX models as graph programs."""

from .dynamic_program import DynamicProgram, load_dynamic
from .importer import import_onnx
from .loading import load_model

__all__ = ["DynamicProgram", "import_onnx", "load_dynamic", "load_model"]
