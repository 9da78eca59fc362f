"""Import ONNX models as graph programs."""

from .importer import import_onnx

__all__ = ["import_onnx"]
