"""Rows made of windows of the row before, which stay in registers: resized channels last."""

import numpy as np
import pytest

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.reference import run
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.kernel_to_nest import rows_across
from isoform.lowering.onnx_to_graph.resizing import interpolation, positions, window


def resized(b: GraphBuilder, x, sizes: tuple[int, int], scale: float, kind: str, how: str):
    for axis, size in zip((2, 3), sizes, strict=True):
        at = positions(how, size, int(size * scale), scale, None)
        matrix = interpolation(at, size, kind, {})
        found = window(at, matrix)
        assert found is not None
        weights = b.constant(found.weights(matrix).astype(np.float32))
        geometry = {"step": found.step, "shift": found.shift, "per": found.per}
        x = b.resample(x, weights, axis=axis, **geometry)
    return x


# Channels, scale, kind, and the step, move and width of the windows.
CASES = {
    "twice": (64, 2, "linear", (2, 1, 3)),
    "twice, channels that fill no vectors": (37, 2, "linear", (2, 1, 3)),
    "three times": (32, 3, "linear", (3, 1, 3)),
    "half more": (37, 1.5, "linear", (3, 2, 4)),
    "half": (37, 0.5, "linear", (1, 2, 2)),
    "twice, cubic": (37, 2, "cubic", (2, 1, 5)),
}


@pytest.mark.parametrize("case", CASES)
def test_windows_of_rows_hold_what_the_reference_says(case: str, isa, monkeypatch):
    """NaN and infinity at the corners go as far as windows do, and no further.

    Weights of what is outside are 0 here; test_memory_bound.py has others.
    """
    channels, scale, kind, expected = CASES[case]
    found: list[tuple[int, int, int] | None] = []
    plan_rolled = rows_across.rolled

    def noted(plan):
        made = plan_rolled(plan)
        found.append(made and (made.step, made.move, made.width))
        return made

    monkeypatch.setattr(rows_across, "rolled", noted)
    b = GraphBuilder()
    kernel = np.eye(channels, dtype=np.float32)[:, :, None, None]
    x = b.input("x", (1, channels, 4, 12))
    y = b.conv(x, b.weight("w", kernel), strides=[1, 1], pads=[0] * 4, dilations=[1, 1])
    b.output("y", resized(b, y, (4, 12), scale, kind, "half_pixel"))
    program = b.build()
    inputs = draw_inputs(program)
    inputs["x"][0, :, 0, 0], inputs["x"][0, :, -1, -1] = np.nan, np.inf
    session = CpuSession(place(program), 1, isa=isa)
    y = session.run(inputs)["y"]
    session.close()
    assert found == [expected]
    np.testing.assert_allclose(y, run(program, inputs)["y"], rtol=1e-5, atol=1e-5)
