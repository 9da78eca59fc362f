"""Draw one model: its inputs, nodes of all families, and a few outputs."""

from __future__ import annotations

import numpy as np
from onnx import helper

from support.random_onnx import contractions, control, elementwise, shapes
from support.random_onnx.case import Case, Value
from support.random_onnx.grower import BOOL, FLOATS, INTEGERS, Grower, initializer, make_model

FAMILIES = {
    **elementwise.FAMILIES,
    **contractions.FAMILIES,
    **shapes.FAMILIES,
    **control.FAMILIES,
}


def random_model(seed: int, nodes: int | None = None, special: float | None = None) -> Case:
    """A model of up to 60 nodes (or about `nodes`) and inputs for it; the same for the same seed.

    Drawn again where onnxruntime refuses the whole of what it took node by node, or computes
    something else then: it moves casts from and to float16, also where asked not to optimise.

    Args:
        special: share of input elements that are infinite, NaN or zero; None draws it (mostly 0).
    """
    for attempt in range(20):
        case = _draw(seed, attempt, nodes, special)
        found = case.run_onnxruntime()
        if found is not None and case.difference(found) is None:
            return case
    raise AssertionError(f"no model for seed {seed}")


def _draw(seed: int, attempt: int, nodes: int | None, special: float | None) -> Case:
    g = Grower(seed, attempt)
    g.special = g.rng.choice((0.0,) * 9 + (0.05,)) if special is None else special
    count = g.rng.randint(10, 70) if nodes is None else nodes
    for k in range(g.rng.randint(1, 3)):
        dtype = FLOATS[0] if k == 0 or g.chance(0.5) else g.rng.choice((*FLOATS, *INTEGERS, BOOL))
        g.input(g.odd_data(g.shape(), dtype))
    families, weights = list(FAMILIES), list(FAMILIES.values())
    tries = 0
    while len(g.nodes) < count and tries < 8 * count:
        tries += 1
        g.rng.choices(families, weights)[0](g)
    return _case(g, seed)


def _case(g: Grower, seed: int) -> Case:
    read = {name for node in g.nodes for name in node.input}
    made = [v for v in g.values if v.name in g.made]
    unread = [v for v in made if v.name not in read] or made[-1:]
    outputs: list[Value] = unread[-12:]
    outputs += [v for v in made if v not in outputs and g.chance(0.05)]
    graph = helper.make_graph(
        g.nodes,
        f"random_{seed}",
        [_info(v) for v in g.inputs],
        [_info(v) for v in outputs],
        [initializer(v) for v in g.initializers],
    )
    case = Case(
        seed,
        make_model(graph, g.opset),
        {v.name: v.array for v in g.inputs},
        {v.name: v for v in (*g.inputs, *g.initializers, *g.made.values())},
    )
    return case.with_outputs([v.name for v in outputs])


def _info(v: Value):
    return helper.make_tensor_value_info(
        v.name, helper.np_dtype_to_tensor_dtype(np.dtype(v.dtype)), list(v.shape)
    )
