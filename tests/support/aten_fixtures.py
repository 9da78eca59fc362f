"""Write tests/fixtures/aten_ops.jsonl: exported calls of every ATen op, with torch's results.

The default tests convert and evaluate these graphs without torch. Needs torch:

    PYTHONPATH=tests python -m support.aten_fixtures
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from isoform.compiler.torch_backend.arrays import as_array
from isoform.compiler.torch_backend.fx_graph import graph_of
from isoform.lowering.aten_to_graph.aten import to_json
from support.aten_calls import traced
from support.aten_cases import Case, cases
from support.aten_op_cases import MAKERS

PATH = Path(__file__).resolve().parents[1] / "fixtures" / "aten_ops.jsonl"
MOST_CHARACTERS = 3000


def main() -> None:
    """Write two calls of each op, or the smallest one where all are large."""
    lines: list[str] = []
    for target in sorted(MAKERS):
        written = sorted((_line(c) for c in cases(target, MAKERS[target], seed=2)), key=len)
        lines += [line for line in written if len(line) <= MOST_CHARACTERS][-2:] or written[:1]
    PATH.write_text("".join(f"{line}\n" for line in lines))


def _line(case: Case) -> str:
    module, tensors = traced(case)
    results = module(*tensors)
    found = [results] if isinstance(results, torch.Tensor) else list(results)
    data: dict[str, Any] = {"op": case.target, "graph": to_json(graph_of(module.graph))}
    data["inputs"] = [_numbers(t) for t in tensors]
    data["outputs"] = [_numbers(t) for t in found]
    return json.dumps(data, separators=(",", ":"))


def _numbers(tensor: Any) -> list[Any]:
    array = as_array(tensor.contiguous()).ravel()
    if array.dtype.kind in "biu":
        return [int(v) for v in array]
    return [float(f"{v:.7g}") for v in array.astype(np.float64)]


if __name__ == "__main__":
    main()
