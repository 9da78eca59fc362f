"""ATen graphs (what torch.compile and torch.export make of a module) -> graph dialect.

Nothing here imports torch: a graph comes in as plain data (`aten.py`), made of torch's by
`compiler/torch_backend/fx_graph.py` or read from text.
"""
