"""Loop nests of ONNX nodes that are no tensor expressions: sorts, scatters, scans, samplers.

`table.py` names the ops, `find.py` gives the nests of a node, `code.py` is what writes them.
"""
