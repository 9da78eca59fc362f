"""Convolutions of any spatial rank: those that no kernel takes run as loops."""

from __future__ import annotations

import numpy as np
import pytest

import isoform
from isoform.dialects import reference


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("spatial", [1, 2, 3, 4, 5])
def test_convolutions_of_any_rank(spatial: int, groups: int) -> None:
    rng = np.random.default_rng(spatial)
    x = rng.standard_normal((1, 4, *[3] * spatial)).astype(np.float32)
    w = rng.standard_normal((4, 4 // groups, *[2] * spatial)).astype(np.float32)
    build = isoform.GraphBuilder()
    ones = [1] * spatial
    ways = {"strides": ones, "pads": [0] * 2 * spatial, "dilations": ones, "groups": groups}
    build.output("y", build.conv(build.input("x", x.shape), build.weight("w", w), **ways))
    program = build.build()
    found = isoform.compile(program, threads=1, effort="quick")(x=x)["y"]
    assert np.allclose(found, reference.run(program, {"x": x})["y"], atol=1e-5)
