"""The top floor: the Python API, the two drivers, and what they need.

`api.py` is what `import isoform` offers, `cli.py` is `isoform`, `opt.py` is `isoform-opt`;
`registry.py` lists dialects, passes and targets, `pipelines.py` and `pass_manager.py` run passes.
"""
