"""Exported calls of every ATen op are converted, and mean what torch computed; torch is not needed.

`tests/support/aten_fixtures.py` writes them.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoform
from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.dialects.types import Array, to_numpy
from isoform.lowering.aten_to_graph.aten import AtenGraph, Spec, UnsupportedAten, from_json, to_json
from isoform.lowering.aten_to_graph.convert import convert, supported
from isoform.lowering.aten_to_graph.table import TABLE

PATH = Path(__file__).parents[1] / "fixtures" / "aten_ops.jsonl"
CALLS: dict[str, list[Any]] = {}
for _line in PATH.read_text().splitlines():
    CALLS.setdefault(json.loads(_line)["op"], []).append(json.loads(_line))

# The reference computes in float64, and the file has seven digits.
NEAR = {"float32": 1e-5, "float64": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}


def _array(numbers: list[Any], spec: Spec) -> Array:
    return np.asarray(numbers).astype(to_numpy(spec.type.element_type)).reshape(spec.shape)


def test_every_op_has_a_fixture() -> None:
    assert set(CALLS) == set(TABLE)


@pytest.mark.parametrize("target", sorted(TABLE))
def test_call_means_what_torch_computed(target: str) -> None:
    for call in CALLS[target]:
        graph = from_json(call["graph"])
        program = convert(graph, {})
        specs = graph.inputs.items()
        feeds = {n: _array(v, s) for v, (n, s) in zip(call["inputs"], specs, strict=True)}
        found = reference.run(program, feeds)
        results = {node.name: node.results for node in graph.nodes}
        for (name, ref), numbers in zip(graph.outputs, call["outputs"], strict=True):
            (spec,) = results[ref.name]
            assert spec is not None and program.outputs[name] == spec.type
            wanted = np.asarray(numbers, np.float64).reshape(spec.shape)
            kinds = {spec.dtype, *(s.dtype for s in graph.inputs.values())}
            near = max(NEAR.get(kind, 0.0) for kind in kinds)
            np.testing.assert_allclose(np.asarray(found[name], np.float64), wanted, near, near)


def test_graphs_survive_text() -> None:
    for calls in CALLS.values():
        for call in calls:
            assert to_json(from_json(call["graph"])) == call["graph"]


def _node(call: Any) -> tuple[Any, dict[str, Any]]:
    graph: AtenGraph = from_json(call["graph"])
    return graph.nodes[0], {name: [spec] for name, spec in graph.inputs.items()}


def test_an_op_that_is_not_in_the_table_is_named() -> None:
    node, specs = _node(CALLS["exp.default"][0])
    other = type(node)("y", "cummax.default", node.args, {}, node.results, "model.py:7")
    assert supported(other, specs) == "model.py:7: op cummax.default is not in the table"


def test_an_operand_that_is_no_tensor_of_ours_is_named() -> None:
    """A graph under `torch.cond`, or a tensor that is sparse or on another device."""
    node, _ = _node(CALLS["exp.default"][0])
    assert supported(node, {}).endswith("is no dense tensor of the cpu")
    branch = type(node)("y", "cond", node.args, {}, node.results)
    assert supported(branch, {}) == "cond: op cond is not in the table"


def test_a_use_that_is_not_supported_is_named() -> None:
    spec = Spec((3,), "uint8")
    node, _ = _node(CALLS["neg.default"][0])
    wrong = type(node)("y", "neg.default", node.args, {}, [spec])
    why = supported(wrong, {node.args[0].name: [spec]})
    assert why.startswith("op neg.default: graph.neg: operands must be floats or signed integers")


def test_another_type_than_torch_says_is_an_error() -> None:
    call = CALLS["exp.default"][0]
    graph = from_json(call["graph"])
    node = graph.nodes[0]
    graph.nodes[0] = type(node)(node.name, node.target, node.args, {}, [Spec((77,), "float32")])
    with pytest.raises(UnsupportedAten, match="gives another type: expected tensor<77xf32>"):
        convert(graph, {})
    assert issubclass(UnsupportedAten, UserError)


def test_isoform_torch_without_torch_is_an_error() -> None:
    spec = find_spec("torch")
    if spec is not None and spec.origin is not None:
        pytest.skip("torch is installed")
    with pytest.raises(UserError, match="torch is not installed"):
        _ = isoform.torch
