"""Parts of random bodies whose sizes data decide: rows that are kept, sorted, cut and put together.

Each part begins with a vector of the body and ends with one: what has as many rows as the data say
is summed, or scattered, or sorted and cut, on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

if TYPE_CHECKING:
    from support.random_nodes.control import Body

_ELEMENTWISE = ("Neg", "Abs", "Tanh", "Exp", "Softsign", "Identity", "Relu", "Cos")


def ints(body: Body, *values: int) -> str:
    return body.constant(np.asarray(values, np.int64))


def chosen(body: Body) -> tuple[str, str]:
    """Which elements of a vector are taken: the vector, booleans."""
    x = body.d.pick(body.names)
    bound = body.constant(np.float32(body.d.float(-1.5, 1.5)))
    return x, body.add(body.d.pick(["Greater", "Less"]), x, bound)


def count(body: Body) -> str:
    """How many elements are above a bound, from 0 to all: int64 without dims."""
    _, mask = chosen(body)
    return body.add("ReduceSum", body.add("Cast", mask, to=7), keepdims=0)


def rows(body: Body) -> str:
    """A vector of a length that data decide."""
    d = body.d
    kind = d.pick(["compress", "positions", "values", "sorted", "cut", "spread", "range", "loop"])
    x, mask = chosen(body)
    if kind == "compress":
        return body.add("Compress", x, mask, axis=0)
    if kind == "positions":
        places = body.add("Transpose", body.add("NonZero", mask))
        return body.add("GatherND", x, places)
    if kind == "values":
        return body.add("Unique", body.add("Round", body.add("Add", x, x)))
    one = ints(body, 1)
    k = body.add("Reshape", count(body), one)
    if kind == "sorted":
        return one_of_two(body, "TopK", [x, k], 0, largest=d.int(0, 1))
    if kind == "cut":
        if d.flag():
            return body.add("Slice", x, ints(body, 0), k)
        return body.add("Slice", x, k, ints(body, 9), ints(body, 0), ints(body, d.int(1, 2)))
    if kind == "spread":
        return body.add("Expand", body.sum(x), k)
    if kind == "loop":
        return stacked(body)
    number = body.add("Reshape", k, body.constant(np.zeros(0, np.int64)))
    ends = [body.constant(np.int64(v)) for v in (0, d.pick([1, 2]))]
    return body.add("Cast", body.add("Range", ends[0], number, ends[1]), to=1)


def one_of_two(b: Body, op: str, inputs: list[str], k: int, **given: Any) -> str:
    names = [b.fresh("v"), b.fresh("v")]
    b.nodes.append(helper.make_node(op, inputs, names, **given))
    return names[k]


def stacked(body: Body) -> str:
    """A row for each iteration of a loop whose number of iterations is computed."""
    from support.random_nodes.control import boolean, float_scalar, scalar, vector

    state, i, going = body.fresh("s"), body.fresh("i"), body.fresh("g")
    inner = body.inner([state])
    after = inner.add("Identity", inner.vector())
    row = inner.add("Identity", inner.sum(after))
    if body.d.flag():
        out = inner.add("Less", inner.sum(after), inner.constant(np.float32(1.5)))
    else:
        out = inner.add("Identity", going)
    graph = helper.make_graph(
        inner.nodes,
        body.fresh("body"),
        [scalar(i), boolean(going), vector(state)],
        [boolean(out), vector(after), float_scalar(row)],
    )
    return one_of_two(body, "Loop", [count(body), "", body.d.pick(body.names)], 1, body=graph)


def changed(body: Body, v: str) -> str:
    """Another vector of a length that data decide."""
    d = body.d
    kind = d.pick(
        ["point", "pair", "running", "softmax", "join", "turn", "centre", "again", "fill"]
    )
    if kind == "point":
        return body.add(d.pick(_ELEMENTWISE), v)
    if kind == "pair":
        return body.add(d.pick(["Add", "Mul", "Max"]), v, body.add("Tanh", v))
    if kind == "running":
        axis = body.constant(np.int64(0))
        given = {"reverse": d.int(0, 1), "exclusive": d.int(0, 1)}
        return body.add("CumSum", v, axis, **given)
    if kind == "softmax":
        return body.add("Softmax", v, axis=0)
    if kind == "join":
        return body.add(
            "Concat", *d.pick([[v, v], [d.pick(body.names), v], [v, rows(body)]]), axis=0
        )
    if kind == "turn":
        return body.add("Slice", v, ints(body, -1), ints(body, -99), ints(body, 0), ints(body, -1))
    if kind == "centre":
        return body.add("Sub", v, body.add("ReduceSum", v, keepdims=1))
    if kind == "fill":
        pads = ints(body, d.int(0, 2), d.int(0, 2))
        return body.add("Pad", v, pads, body.constant(np.float32(0.5)))
    mask = body.add("Greater", v, body.constant(np.float32(0)))
    return body.add("Compress", v, mask, axis=0)


def back(body: Body, v: str) -> str:
    """A vector of the size that all have, from one of a length that data decide."""
    d = body.d
    x = d.pick(body.names)
    kind = d.pick(["sum", "greatest", "mean", "size", "scatter", "first", "position", "branch"])
    if kind == "sum":
        return body.add("Add", x, body.add("Tanh", body.sum(v)))
    one = body.add("Concat", v, body.constant(np.asarray([0.25], np.float32)), axis=0)
    if kind in ("greatest", "mean"):
        op = {"greatest": d.pick(["ReduceMax", "ReduceMin"]), "mean": "ReduceMean"}[kind]
        return body.add("Mul", x, body.add(op, one, keepdims=0))
    if kind == "size":
        return body.add("Add", x, body.add("Cast", body.add("Size", v), to=1))
    if kind == "position":
        place = body.add(d.pick(["ArgMax", "ArgMin"]), one, axis=0, keepdims=0)
        return body.add("Add", x, body.add("Gather", one, place))
    if kind == "branch":
        least = body.add("Less", body.add("Size", v), body.constant(np.int64(3)))
        other = body.inner([])
        there = body.inner([])
        graphs = [
            subgraph(other, other.add("Neg", x)),
            subgraph(there, there.add("Add", x, there.sum(v))),
        ]
        return body.add("If", least, then_branch=graphs[0], else_branch=graphs[1])
    longer = body.add("Concat", v, x, axis=0)
    if kind == "first":
        return body.add("Slice", longer, ints(body, 0), ints(body, 4))
    y, mask = chosen(body)
    places = body.add("Transpose", body.add("NonZero", mask))
    return body.add("ScatterND", x, places, body.add("Tanh", body.add("GatherND", y, places)))


def subgraph(body: Body, result: str) -> Any:
    from support.random_nodes.control import vector

    return helper.make_graph(body.nodes, body.fresh("graph"), [], [vector(result)])


def listed(body: Body) -> str:
    """Through a sequence, or an optional."""
    d = body.d
    picked = [d.pick(body.names) for _ in range(d.int(1, 3))]
    if d.flag(0.2):
        return body.add("OptionalGetElement", body.add("Optional", picked[0]))
    if d.flag(0.3):  # of tensors of other lengths
        s = body.add("SequenceConstruct", *picked, rows(body), rows(body))
        return back(body, body.add("ConcatFromSequence", s, axis=0))
    s = body.add("SequenceConstruct", *picked)
    if d.flag():
        s = body.add("SequenceInsert", s, d.pick(body.names), body.constant(np.int64(0)))
    if d.flag():
        return body.add("SequenceAt", s, body.constant(np.int64(-1)))
    joined = body.add("ConcatFromSequence", s, axis=0, new_axis=1)
    return body.add("ReduceMean", joined, ints(body, 0), keepdims=0)


def sized(body: Body) -> str:
    """A vector by way of values whose size data decide."""
    v = rows(body)
    for _ in range(body.d.int(0, 3)):
        v = changed(body, v)
    return back(body, v)
