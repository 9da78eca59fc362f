"""Floats of 8 and 4 bits: every code and every rounding, in the reference and in kernels.

ml_dtypes is the oracle, but where it departs from the specification (docs/onnx-disagreements.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import Float4E2M1FNType, Float8E8M0FNUType, bf16, f16, f32, f64, i1, i32
from xdsl.ir import Attribute

import isoform
from isoform.compiler.frontends.module_text import module_text
from isoform.compiler.frontends.program_file import parse
from isoform.dialects import reference
from isoform.dialects.arithmetic import Arithmetic
from isoform.dialects.errors import UserError
from isoform.dialects.types import float_types, holds, is_small_float, to_numpy

SMALL = [element for element in float_types() if is_small_float(element)]


def codes(element: Attribute) -> np.ndarray:
    """Every number of a type."""
    count = 16 if isinstance(element, Float4E2M1FNType) else 256
    return np.arange(count, dtype=np.uint8).view(to_numpy(element))


def numbers(element: Attribute) -> np.ndarray:
    """Every number, every tie between two, their neighbours, what overflows, and random bits."""
    exact = codes(element).astype(np.float32)
    finite = np.unique(exact[np.isfinite(exact)])
    ties = (finite[1:] + finite[:-1]) / 2
    sides = [np.nextafter(ties, np.float32(end)) for end in (np.inf, -np.inf)]
    far = finite.max() * np.array([1.06, 1.07, 1.25, 1.49, 1.5, 1.51, 2, 1e3], np.float64)
    far = far.astype(np.float32)
    drawn = np.random.default_rng(0).integers(0, 2**32, 2000, dtype=np.uint32).view(np.float32)
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, 1e-38], np.float32)
    return np.concatenate([exact, ties, *sides, far, -far, drawn, ends])


def oracle(x: np.ndarray, element: Attribute) -> np.ndarray:
    with np.errstate(all="ignore"):
        found = x.astype(np.float32).astype(to_numpy(element))
    if isinstance(element, Float4E2M1FNType):
        return np.where(np.isnan(x), np.zeros((), found.dtype), found)
    if isinstance(element, Float8E8M0FNUType):  # nearer to 2^-127 than to 2^-126
        low = (x.astype(np.float64) > 2.0**-127) & (x.astype(np.float64) < 1.5 * 2.0**-127)
        return np.where(low, np.array(2.0**-127).astype(found.dtype), found)
    return found


def same(a: Any, b: Any) -> bool:
    """Equal, zeros with their signs; any NaN is like another."""
    x, y = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
    equal = (x == y) & (np.signbit(x) == np.signbit(y))
    return x.shape == y.shape and bool((equal | (np.isnan(x) & np.isnan(y))).all())


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")
@pytest.mark.parametrize("element", SMALL, ids=str)
def test_every_number_is_converted_as_specified(element: Attribute) -> None:
    every, x = codes(element), numbers(element)
    b = isoform.GraphBuilder()
    c, s = b.input("c", every.shape, element), b.input("s", x.shape)
    h, d = b.input("h", x.shape, f16), b.input("d", x.shape, f64)
    for target in (f32, f64, f16, bf16, i32, i1, *(e for e in SMALL if e != element)):
        b.output(f"to {target}", b.cast(c, to=target))
    for name, source in (("s", s), ("h", h), ("d", d)):
        b.output(f"of {name}", b.cast(source, to=element))
    b.output("literal", b.cast(b.constant(every, element), to=f32))
    b.output("moved", b.transpose(b.reshape(c, shape=[4, len(every) // 4]), perm=[1, 0]))
    program = b.build()
    feeds = {"c": every, "s": x, "h": x.astype(np.float16), "d": x.astype(np.float64)}
    read = parse(module_text(program.module))
    assert module_text(read.module) == module_text(program.module)
    wanted = reference.run(read, feeds, Arithmetic.COMPUTED)
    with isoform.compile(program, threads=1, effort="quick") as session:
        found = session(**feeds)
    for name, array in found.items():
        assert same(array, wanted[name]), name
    assert same(found["to f32"], every.astype(np.float32))
    assert same(found["literal"], every.astype(np.float32))
    assert same(found["moved"], every.reshape(4, -1).T)
    for name in "shd":
        assert same(found[f"of {name}"], oracle(feeds[name], element)), name


@pytest.mark.parametrize("element", SMALL, ids=str)
def test_nothing_is_computed_with_them(element: Attribute) -> None:
    b = isoform.GraphBuilder()
    x = b.input("x", (4, 4), element)
    for op in (lambda: b.add(x, x), lambda: b.relu(x), lambda: b.matmul(x, x)):
        with pytest.raises(UserError, match="only converted and moved"):
            op()


def test_a_small_float_holds_itself_alone() -> None:
    for element in SMALL:
        assert holds(f32, element) and holds(element, element)
        assert not any(holds(element, e) for e in (*SMALL, i1, i32, f32) if e != element)


def test_shapes_that_are_empty_or_odd_are_stored() -> None:
    for shape in ((0, 3), (), (1,), (3, 5, 7), (33,), (2, 129)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32) * 9
        for element in SMALL:
            b = isoform.GraphBuilder()
            b.output("y", b.cast(b.input("x", shape), to=element))
            with isoform.compile(b.build(), threads=1, effort="quick") as session:
                assert same(session(x=x)["y"], oracle(x, element)), (shape, element)
