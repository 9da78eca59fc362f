"""Random single-node models of every op that may become opaque, judged by onnxruntime."""
