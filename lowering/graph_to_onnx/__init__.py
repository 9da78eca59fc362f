"""Export graph programs as ONNX models."""
