"""Random models of If, Loop and Scan: decided by constants or by data, nested, reading outside.

A body works on vectors of one size, so that every value fits every op; loops that data end have a
count too, or grow their values until a bound is passed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from support.random_nodes.draw import Draw
from support.random_nodes.sized import listed, sized

SIZE = 4
_UNARY = ("Neg", "Abs", "Tanh", "Relu", "Softsign", "Cos")
_BINARY = ("Add", "Sub", "Mul", "Max", "Min")


class Body:
    """A graph under construction: its nodes, and the vectors that a node in it may read."""

    def __init__(
        self, d: Draw, names: list[str], counter: list[int], depth: int, sizes: bool = False
    ):
        self.d, self.names, self.counter, self.depth = d, list(names), counter, depth
        self.sizes = sizes
        self.nodes: list[onnx.NodeProto] = []

    def fresh(self, stem: str) -> str:
        self.counter[0] += 1
        return f"{stem}{self.counter[0]}"

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = self.fresh("v")
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        return self.add("Constant", value=onnx.numpy_helper.from_array(np.asarray(value)))

    def vector(self) -> str:
        """A new vector of the size that all have."""
        d = self.d
        if self.depth < 2 and d.flag(0.3):
            more = [partial(sized, self), partial(listed, self)] if self.sizes else []
            found = d.pick([self.branch, self.loop, self.scan, *more])()
        elif d.flag():
            found = self.add(d.pick(_UNARY), d.pick(self.names))
        else:
            found = self.add(d.pick(_BINARY), d.pick(self.names), d.pick(self.names))
        self.names.append(found)
        return found

    def inner(self, more: list[str]) -> Body:
        return Body(self.d, [*self.names, *more], self.counter, self.depth + 1, self.sizes)

    def sum(self, name: str) -> str:
        """The sum of a vector, no dims."""
        return self.add("ReduceSum", name, keepdims=0)

    def condition(self) -> str:
        """A boolean that depends on data, or a constant."""
        if self.d.flag(0.2):
            return self.constant(self.d.flag())
        return self.add("Less", self.sum(self.d.pick(self.names)), self.constant(np.float32(0.5)))

    def branch(self) -> str:
        graphs: list[onnx.GraphProto] = []
        condition = self.condition()
        for name in ("then", "else"):
            body = self.inner([])
            found = body.vector()
            graphs.append(helper.make_graph(body.nodes, self.fresh(name), [], [vector(found)]))
        return self.add("If", condition, then_branch=graphs[0], else_branch=graphs[1])

    def loop(self) -> str:
        """One or two carried vectors; perhaps a scan output, where its length is known."""
        d, states = self.d, [self.fresh("s") for _ in range(self.d.int(1, 2))]
        i, going = self.fresh("i"), self.fresh("g")
        body = self.inner(states)
        after = [body.vector() for _ in states]
        after = [body.add("Identity", name) for name in after]
        kind = d.pick(["counted", "counted", "data", "counting data"])
        outs = [boolean(going), *map(vector, after)]
        if kind == "counted":
            carried_on = body.add("Identity", going) if d.flag() else going
            outs[0] = boolean(carried_on)
        else:
            bound = body.constant(np.int64(d.int(1, 5)))
            early = body.add("Less", body.sum(after[0]), body.constant(np.float32(2)))
            outs[0] = boolean(body.add("And", body.add("Less", i, bound), early))
        scanned = kind == "counted" and d.flag()
        if scanned:
            outs.append(vector(body.add("Identity", after[0])))
        count = self.constant(np.int64(d.int(1, 4))) if kind != "data" else ""
        first = self.constant(True) if d.flag() else ""
        if kind == "data" and d.flag():
            first = self.condition()
        graph = helper.make_graph(
            body.nodes, self.fresh("body"), [scalar(i), boolean(going), *map(vector, states)], outs
        )
        results = [self.fresh("v") for _ in range(len(states) + scanned)]
        inputs = [count, first, *(d.pick(self.names) for _ in states)]
        self.nodes.append(helper.make_node("Loop", inputs, results, body=graph))
        if scanned:
            axes = self.constant(np.asarray([0], np.int64))
            return self.add("ReduceSum", results[-1], axes, keepdims=0)
        return d.pick(results)

    def scan(self) -> str:
        """Over the rows of an outer product, forward or backward."""
        d, state, row = self.d, self.fresh("s"), self.fresh("r")
        shape = self.constant(np.asarray([SIZE, 1], np.int64))
        column = self.add("Reshape", d.pick(self.names), shape)
        matrix = self.add("Mul", column, d.pick(self.names))
        body = self.inner([state, row])
        after, out = (body.add("Identity", body.vector()) for _ in range(2))
        graph = helper.make_graph(
            body.nodes,
            self.fresh("body"),
            [vector(state), vector(row)],
            [vector(after), vector(out)],
        )
        results = [self.fresh("v"), self.fresh("v")]
        given: dict[str, Any] = {
            "scan_input_directions": [d.int(0, 1)],
            "scan_output_directions": [d.int(0, 1)],
        }
        inputs = [d.pick(self.names), matrix]
        self.nodes.append(
            helper.make_node("Scan", inputs, results, body=graph, num_scan_inputs=1, **given)
        )
        axes = self.constant(np.asarray([d.int(0, 1)], np.int64))
        summed = self.add("ReduceSum", results[1], axes, keepdims=0)
        return d.pick([results[0], summed])


def vector(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [SIZE])


def boolean(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.BOOL, [])


def scalar(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, [])


def float_scalar(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [])


def random_model(seed: int, sizes: bool = False) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A model with at least one If, Loop or Scan, and its inputs.

    Args:
        sizes: whether there are values, too, whose size data decide, sequences and optionals.
    """
    d = Draw(seed)
    body = Body(d, ["x", "z"], [0], 0, sizes)
    more = [partial(sized, body)] * 3 if sizes else []
    first = d.pick([body.branch, body.loop, body.scan, *more])()
    body.names.append(first)
    last = body.add("Add", body.vector(), first)
    graph = helper.make_graph(body.nodes, "g", [vector("x"), vector("z")], [vector(last)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model, {name: d.array("float32", [SIZE]) for name in ("x", "z")}
