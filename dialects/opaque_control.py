"""Loop and Scan inside opaque nodes.

onnx.reference ends a Loop without a condition at once, joins scan outputs where it must stack them,
and scans only forward along the first dim.

Source: ONNX operators Loop, Scan (9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


def control_operators() -> Mapping[str, type[OpRun]]:
    """Operator classes of onnx.reference, by op type."""
    from onnx.reference.op_run import OpRun

    class Loop(OpRun):
        op_domain = ""

        def need_context(self) -> bool:
            return True

        def _run(self, *inputs: Any, context: Any = None, attributes: Any = None, **_: Any) -> Any:
            body: Any = self.body  # pyright: ignore[reportAttributeAccessIssue]
            results = _loop(body, inputs, dict(context or {}), attributes)
            return tuple(results[: len(self.onnx_node.output)])

    class Scan(OpRun):
        op_domain = ""

        def need_context(self) -> bool:
            return True

        def _run(
            self, *inputs: Any, context: Any = None, attributes: Any = None, **given: Any
        ) -> Any:
            body: Any = self.body  # pyright: ignore[reportAttributeAccessIssue]
            results = _scan(body, inputs, dict(context or {}), attributes, given)
            return tuple(results[: len(self.onnx_node.output)])

    return {"Loop": Loop, "Scan": Scan}


def _loop(body: Any, inputs: Sequence[Any], feeds: dict[str, Any], attributes: Any) -> list[Any]:
    """Carried values and scan outputs; an omitted count or condition sets no bound."""
    count, first, *carried = inputs
    going = True if first is None else bool(np.asarray(first).all())
    limit = None if count is None else int(np.asarray(count).ravel()[0])
    rows: list[list[Any]] = []
    while going and (limit is None or len(rows) < limit):
        steps = [np.asarray(len(rows), np.int64), np.asarray(True)]
        feeds.update(zip(body.input_names, [*steps, *carried], strict=True))
        condition, *results = body.run(None, feeds, attributes=attributes)
        going = bool(np.asarray(condition).all())
        carried, row = results[: len(carried)], results[len(carried) :]
        rows.append(row)
    scans = len(body.output_names) - 1 - len(carried)
    if not rows and scans:
        raise ValueError("the type of a scan output is not known without an iteration")
    return [*carried, *(np.stack([row[k] for row in rows]) for k in range(scans))]


def _scan(
    body: Any,
    inputs: Sequence[Any],
    feeds: dict[str, Any],
    attributes: Any,
    given: Mapping[str, Any],
) -> list[Any]:
    """Final states and scan outputs; each input and output has its own axis and direction."""
    scanned = given["num_scan_inputs"]
    states, sources = list(inputs[: len(inputs) - scanned]), inputs[len(inputs) - scanned :]
    outs = len(body.output_names) - len(states)
    in_axes = given.get("scan_input_axes") or [0] * scanned
    backward = given.get("scan_input_directions") or [0] * scanned
    lines = [
        np.flip(np.moveaxis(x, axis, 0), 0) if back else np.moveaxis(x, axis, 0)
        for x, axis, back in zip(sources, in_axes, backward, strict=True)
    ]
    if len({len(line) for line in lines}) != 1 or len(lines[0]) == 0:
        raise ValueError("scan inputs need one length, of at least 1")
    rows: list[list[Any]] = []
    for step in zip(*lines, strict=True):
        feeds.update(zip(body.input_names, [*states, *step], strict=True))
        results = body.run(None, feeds, attributes=attributes)
        states = results[: len(states)]
        rows.append(results[len(states) :])
    out_axes = given.get("scan_output_axes") or [0] * outs
    reverse = given.get("scan_output_directions") or [0] * outs
    columns = [[row[k] for row in rows] for k in range(outs)]
    columns = [c[::-1] if back else c for c, back in zip(columns, reverse, strict=True)]
    return [*states, *(np.stack(c, axis) for c, axis in zip(columns, out_axes, strict=True))]
