"""Floor 1: the dialects graph, algebra and kernel, their attributes, shape inference and reference
meaning."""
