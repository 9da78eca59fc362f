"""Import ONNX models as graph programs."""
