"""Convert a node that may read padding or computed sizes; note which results are padded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...dialects.dims import is_symbolic
from . import computed_places, computed_sizes, functions, padded_ops, sequences
from .node import OnnxNode
from .padded import RULES, Reading, Ready, Sizes, follow
from .subgraphs import CallContext, Importing
from .value_ranges import EACH, ValueRange
from .values import NeedsNumbers, OnnxValue

_HANDLERS: Mapping[str, padded_ops.Handler] = {
    **padded_ops.HANDLERS,
    **computed_sizes.HANDLERS,
    **computed_places.HANDLERS,
}


def prepared(node: OnnxNode, sizes: Sizes) -> Ready | None:
    """A node that reads no padding any more, or its results; None where nothing is in its way.

    Raises:
        UserError: it does with padding, or with computed sizes, what has no form.
    """
    handler = _HANDLERS.get(node.op_type)
    if handler is None:
        return None
    reading = Reading(node, sizes)
    if sizes.symbolic:
        if reading.given or computed_sizes.decided_by_data(reading):
            raise NeedsNumbers("data decide sizes beside symbols", where=node.where)
        return None
    if not reading.given and node.op_type not in computed_sizes.SIZED:
        return None
    return handler(reading)


def results(
    importer: Importing,
    node: OnnxNode,
    domain: str,
    scope: CallContext,
    plain: Callable[[OnnxNode], Sequence[OnnxValue | None]],
) -> Sequence[OnnxValue | None]:
    """The results of a node.

    Args:
        plain: converts a node that reads no padding.

    Raises:
        UserError: as `prepared`, or as the conversion.
    """
    if not domain and (joined := sequences.as_concat(node)) is not None:
        node = joined if Reading(joined, importer.sizes).given else node
    ready = None if domain else prepared(node, importer.sizes)
    if ready is not None:
        return _finished(importer, node, ready, plain)
    reading = Reading(node, importer.sizes)
    if reading.given and importer.sizes.symbolic:
        raise NeedsNumbers("data decide sizes beside symbols", where=node.where)
    if reading.given and node.op_type in sequences.HANDED_ON:
        return plain(node)
    if reading.given and node.op_type not in RULES:
        return _by_body(importer, reading, domain, scope)
    found = plain(node)
    follow(reading, found)
    _note(node, importer.sizes)
    return found


def _finished(
    importer: Importing,
    node: OnnxNode,
    ready: Ready,
    plain: Callable[[OnnxNode], Sequence[OnnxValue | None]],
) -> list[OnnxValue | None]:
    if ready.node is None:
        importer.record(node, "composed")
        found = list[OnnxValue | None](importer.named(node, ready.results))
    else:
        found = list(plain(ready.node))
    if ready.finish is not None and (first := found[0]) is not None:
        whole = ready.finish(first.ssa(node.build, node.fresh, node.where))
        found[0] = OnnxValue.of_ssa(first.name, whole)
    for k, (value, rows) in enumerate(zip(found, ready.dims, strict=False)):
        if rows is not None and value is not None:
            ssa = value.ssa(node.build, node.fresh, node.where)
            importer.sizes.pad(ssa, rows)
            found[k] = OnnxValue.of_ssa(value.name, ssa)  # not data of the largest size
    return found


def _by_body(
    importer: Importing, reading: Reading, domain: str, scope: CallContext
) -> Sequence[OnnxValue | None]:
    """An op without a rule, by the ops that define it. Raises UserError where it has none."""
    node = reading.node
    if functions.schema_body(node, domain) is None or functions.key(node.proto) in scope.calls:
        raise reading.unfit()
    found = importer.call_body(node, lambda n: functions.schema_body(n, domain), scope)
    importer.record(node, "composed")
    return found


def _note(node: OnnxNode, sizes: Sizes) -> None:
    """Remember the numbers of small operands: the program holds them as weights."""
    for value in node.inputs:
        if value is None or value.computed is None or not value.is_known:
            continue
        array = value.array()
        if array.size <= EACH and array.dtype.kind in "iuf" and not is_symbolic(array):
            numbers = array.astype(np.float64)
            sizes.ranges[value.computed] = ValueRange(numbers, numbers)
