"""Ops that move data: reshapes, slices, pads, concatenation, tiles, masks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.dims import broadcast_shapes, surely_same
from ...dialects.errors import UserError
from ...dialects.opaque_kernels.slices_pads_norms import slice_extent
from ...dialects.types import shape_of, to_numpy
from .folding import range_size
from .node import OnnxNode
from .tensor_data import element_of_number
from .values import NotNative, as_float

# Constants made by a composition (positions, masks) have at most this many elements.
MAX_CONSTANT = 1 << 26


def reshape(node: OnnxNode) -> list[SSAValue]:
    """0 copies a dim (unless allowzero); one -1 is the remainder."""
    x = node[0]
    given = node.constant_ints(1, "the shape")
    old = shape_of(x)
    if not node.flag("allowzero"):
        if any(n == 0 and k >= len(old) for k, n in enumerate(given)):
            raise UserError("a 0 copies a dim that the operand lacks", found=given)
        given = [old[k] if n == 0 else n for k, n in enumerate(given)]
    if given.count(-1) > 1 or any(n < -1 for n in given):
        raise UserError("a shape has at most one -1", found=given)
    if -1 in given:
        rest = -math.prod(given)
        if rest == 0 or math.prod(old) % rest != 0:
            raise UserError("the -1 has no whole value", found=f"{list(old)} to {given}")
        given = [math.prod(old) // rest if n == -1 else n for n in given]
    return [node.reshape(x, given)]


def flatten(node: OnnxNode) -> list[SSAValue]:
    """A matrix: dims before `axis`, dims from it on."""
    shape, axis = node.shape(0), node.int("axis", 1)
    rank = len(shape)
    if not -rank <= axis <= rank:
        raise UserError(f"axis {axis} is not in [-{rank}, {rank}]")
    axis = axis + rank if axis < 0 else axis
    return [node.reshape(node[0], [math.prod(shape[:axis]), math.prod(shape[axis:])])]


def _axes(node: OnnxNode, rank: int) -> list[int] | None:
    """Axes from the attribute (before opset 13) or the second operand; None if missing."""
    if node.version < 13:
        given = node.ints("axes", []) if "axes" in node.attributes else None
    else:
        given = node.constant_ints(1, "axes") if node.has(1) else None
    return None if given is None else node.axes(given, rank)


def squeeze(node: OnnxNode) -> list[SSAValue]:
    """Drop dims of extent 1."""
    shape = node.shape(0)
    axes = _axes(node, len(shape))
    if axes is None:
        axes = [k for k, n in enumerate(shape) if n == 1]
    if any(shape[k] != 1 for k in axes):
        raise UserError("only dims of extent 1 can be squeezed", found=f"{list(shape)} at {axes}")
    return [node.reshape(node[0], [n for k, n in enumerate(shape) if k not in axes])]


def unsqueeze(node: OnnxNode) -> list[SSAValue]:
    """Insert dims of extent 1; axes count in the result."""
    shape = list(node.shape(0))
    count = len(node.ints("axes")) if node.version < 13 else len(node.constant_ints(1, "axes"))
    for axis in _axes(node, len(shape) + count) or []:
        shape.insert(axis, 1)
    return [node.reshape(node[0], shape)]


def transpose(node: OnnxNode) -> list[SSAValue]:
    """Permute dims; reverse them if no permutation is given."""
    rank = len(node.shape(0))
    perm = node.ints("perm", range(rank - 1, -1, -1))
    axes = [node.axis(p, rank) for p in perm]
    if len(set(axes)) != len(axes) or len(axes) != rank:
        raise UserError("'perm' is not a permutation of the dims", found=list(perm))
    return [node.transpose(node[0], axes)]


def concat(node: OnnxNode) -> list[SSAValue]:
    """One after another along the axis."""
    values = node.operands()
    axis = node.axis(node.int("axis", 1), len(shape_of(values[0])))
    return values if len(values) == 1 else [node.build.concat(*values, axis=axis)]


def split(node: OnnxNode) -> list[SSAValue]:
    """By sizes, or evenly (the last part may be smaller, from opset 18 on)."""
    shape, count = node.shape(0), len(node.proto.output)
    axis = node.axis(node.int("axis", 0), len(shape))
    if node.version < 13:
        sizes = node.ints("split", []) or None
    else:
        sizes = node.constant_ints(1, "sizes") if node.has(1) else None
    if sizes is None:
        count = node.int("num_outputs", count)
        if count != len(node.proto.output):
            raise UserError("num_outputs is another number", found=count)
        chunk = -(-shape[axis] // count)
        sizes = [max(0, min(chunk, shape[axis] - k * chunk)) for k in range(count)]
        if node.version < 18 and shape[axis] % count != 0:
            raise UserError(
                f"dim {axis} does not split into {count} equal parts", found=list(shape)
            )
    if len(sizes) != len(node.proto.output):
        raise UserError(
            "sizes and results differ in number", expected=len(node.proto.output), found=sizes
        )
    return node.build.split(node[0], axis, sizes)


def slice_(node: OnnxNode) -> list[SSAValue]:
    """Starts, ends, axes and steps with ONNX's clamping."""
    shape = node.shape(0)
    rank = len(shape)
    if node.version < 10:
        first, last = node.ints("starts"), node.ints("ends")
        axes, by = node.ints("axes", range(len(first))), [1] * len(first)
    else:
        first, last = node.constant_ints(1, "starts"), node.constant_ints(2, "ends")
        axes = node.constant_ints(3, "axes") if node.has(3) else list(range(len(first)))
        by = node.constant_ints(4, "steps") if node.has(4) else [1] * len(first)
    if not len(first) == len(last) == len(axes) == len(by):
        raise UserError("starts, ends, axes and steps differ in number")
    starts, sizes, steps = [0] * rank, list(shape), [1] * rank
    for start, end, axis, step in zip(first, last, axes, by, strict=True):
        if step == 0:
            raise UserError("a step is 0")
        k = node.axis(axis, rank)
        first_kept, count = slice_extent(start, end, step, shape[k])
        starts[k], sizes[k], steps[k] = (first_kept if count > 0 else 0), count, step
    return [sliced(node, node[0], starts, sizes, steps)]


def sliced(
    node: OnnxNode, x: SSAValue, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]
) -> SSAValue:
    """Slice; no op if nothing changes."""
    if surely_same(sizes, shape_of(x)) and all(
        s == 1 or n <= 1 for s, n in zip(steps, sizes, strict=True)
    ):
        return x
    return node.build.slice(x, starts=list(starts), sizes=list(sizes), steps=list(steps))


def expand(node: OnnxNode) -> list[SSAValue]:
    """Broadcast to a constant shape, both ways."""
    shape = node.constant_ints(1, "the shape")
    try:
        full = broadcast_shapes(node.shape(0), tuple(shape))
    except ValueError as error:
        raise UserError(
            "the shapes do not broadcast", found=f"{list(node.shape(0))} and {shape}"
        ) from error
    return [node.build.expand(node[0], full)]


def tile(node: OnnxNode) -> list[SSAValue]:
    """Broadcast a new dim before each tiled one, then merge the two."""
    x, shape = node[0], shape_of(node[0])
    repeats = node.constant_ints(1, "repeats")
    if node.version < 6:
        raise NotNative
    if len(repeats) != len(shape) or any(r < 0 for r in repeats):
        raise UserError("one repeat per dim is needed", expected=len(shape), found=repeats)
    return [tiled(node, x, repeats)]


def tiled(node: OnnxNode, x: SSAValue, repeats: Sequence[int]) -> SSAValue:
    """x repeated along each dim."""
    shape = shape_of(x)
    if all(r == 1 for r in repeats):
        return x
    full = [n for pair in zip(repeats, shape, strict=True) for n in pair]
    spread = node.build.broadcast(x, shape=full, dims=[2 * k + 1 for k in range(len(shape))])
    return node.reshape(spread, [r * n for r, n in zip(repeats, shape, strict=True)])


# --- pads ---


def pad(node: OnnxNode) -> list[SSAValue]:
    """Constant, reflect, edge and wrap modes; negative pads crop."""
    x, rank = node[0], len(node.shape(0))
    mode = node.string("mode", "constant")
    given = node.ints("pads") if node.version < 11 else node.constant_ints(1, "pads")
    axes = node.constant_ints(3, "axes") if node.has(3) else list(range(rank))
    axes = [node.axis(a, rank) for a in axes]
    if len(given) != 2 * len(axes):
        raise UserError(f"{2 * len(axes)} pads are needed", found=given)
    pads = [0] * (2 * rank)
    for j, k in enumerate(axes):
        pads[k], pads[k + rank] = given[j], given[j + len(axes)]
    if mode == "constant":
        return [_constant_pad(node, x, pads)]
    if mode not in ("reflect", "edge", "wrap"):
        raise UserError(f"mode '{mode}' is unknown")
    for k in range(rank):
        x = _mirrored(node, x, k, pads[k], pads[k + rank], mode)
    return [x]


def _constant_pad(node: OnnxNode, x: SSAValue, pads: list[int]) -> SSAValue:
    if not any(pads):
        return x
    if node.version < 11:
        return node.build.pad(x, pads=pads, fill=node.float("value", 0.0))
    if not node.has(2):
        return node.build.pad(x, pads=pads)
    fill = node.known(2)
    if fill is not None and fill.size != 1:
        raise UserError("the fill is not a single number", found=list(fill.shape))
    number = as_float(fill) if fill is not None else None
    if number is not None:
        return node.build.pad(x, pads=pads, fill=number)
    inside = node.build.pad(node.literal(1, x), pads=pads)
    zero = node.literal(0, inside)
    fill_everywhere = node.build.expand(node.reshape(node[2], []), shape_of(inside))
    return node.build.where(
        node.build.equal(inside, zero), fill_everywhere, node.build.pad(x, pads=pads)
    )


def _mirrored(
    node: OnnxNode, x: SSAValue, axis: int, before: int, after: int, mode: str
) -> SSAValue:
    """Pad one dim from the tensor itself, what negative pads leave of it: a gather."""
    first = max(0, -before)
    n = shape_of(x)[axis] - first - max(0, -after)
    before, after = max(0, before), max(0, after)
    if n == shape_of(x)[axis] and before == after == 0:
        return x
    if n == 0 and before + after > 0:
        raise UserError(f"mode '{mode}' needs a dim with elements", found=list(shape_of(x)))
    if n < 0 or before + n + after > MAX_CONSTANT:
        raise UserError(
            "the pads crop more than there is, or pad beyond reason", found=(before, after)
        )
    positions = np.arange(-before, n + after)
    if mode == "edge":
        positions = np.clip(positions, 0, n - 1)
    elif mode == "wrap":
        positions = positions % n
    else:
        period = max(2 * (n - 1), 1)
        positions = np.abs((positions + (n - 1)) % period - (n - 1))
    return taken(node, x, axis, positions + first)


def taken(node: OnnxNode, x: SSAValue, axis: int, positions: np.ndarray) -> SSAValue:  # pyright: ignore
    """x at constant positions along an axis: repeats, slices for few runs, or else a gather."""
    size = shape_of(x)[axis]
    times = len(positions) // max(1, size)
    if times > 1 and np.array_equal(positions, np.arange(size * times) // times):
        return repeated(node, x, axis, times)
    runs = _runs([int(p) for p in positions])
    if not runs or len(runs) > 64:
        indices = node.data(positions.astype(np.int64), f"positions{axis}")
        return node.build.gather(x, indices, axis=axis)
    shape = list(shape_of(x))
    parts = [
        sliced(
            node,
            x,
            [start if k == axis else 0 for k in range(len(shape))],
            [size if k == axis else n for k, n in enumerate(shape)],
            [step if k == axis else 1 for k in range(len(shape))],
        )
        for start, size, step in runs
    ]
    return parts[0] if len(parts) == 1 else node.build.concat(*parts, axis=axis)


def repeated(node: OnnxNode, x: SSAValue, axis: int, times: int) -> SSAValue:
    """Repeat every element along an axis, as in enlarging a picture by an integer factor."""
    before, after = list(shape_of(x)[:axis]), list(shape_of(x)[axis + 1 :])
    size, build = shape_of(x)[axis], node.build
    dims = [k if k <= axis else k + 1 for k in range(len(shape_of(x)))]
    wide = build.broadcast(x, shape=[*before, size, times, *after], dims=dims)
    return build.reshape(wide, shape=[*before, size * times, *after])


def _runs(positions: list[int]) -> list[tuple[int, int, int]]:
    """Maximal arithmetic runs of step 1 or -1: (start, size, step)."""
    runs: list[tuple[int, int, int]] = []
    for p in positions:
        if runs:
            start, size, step = runs[-1]
            if size == 1 and p - start in (1, -1):
                runs[-1] = (start, 2, p - start)
                continue
            if size > 1 and p == start + size * step:
                runs[-1] = (start, size + 1, step)
                continue
        runs.append((p, 1, 1))
    return runs


# --- depth and space, masks ---


def depth_to_space(node: OnnxNode) -> list[SSAValue]:
    """Blocks of channels become blocks of pixels."""
    n, c, h, w = _image(node)
    b, mode = node.int("blocksize", 0), node.string("mode", "DCR")
    if b < 1 or c % (b * b) != 0:
        raise UserError(f"{c} channels do not fill blocks of {b}")
    d = c // (b * b)
    split_, perm = {
        "DCR": ([n, b, b, d, h, w], [0, 3, 4, 1, 5, 2]),
        "CRD": ([n, d, b, b, h, w], [0, 1, 4, 2, 5, 3]),
    }.get(mode, ([], []))
    if not split_:
        raise UserError(f"mode '{mode}' is unknown")
    return [node.reshape(node.transpose(node.reshape(node[0], split_), perm), [n, d, h * b, w * b])]


def space_to_depth(node: OnnxNode) -> list[SSAValue]:
    """Blocks of pixels become channels."""
    n, c, h, w = _image(node)
    b, mode = node.int("blocksize", 0), node.string("mode", "DCR")
    if b < 1 or h % b or w % b:
        raise UserError(f"an image of {h} x {w} has no blocks of {b}")
    perm = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    split_ = node.reshape(node[0], [n, c, h // b, b, w // b, b])
    return [node.reshape(node.transpose(split_, perm), [n, c * b * b, h // b, w // b])]


def _image(node: OnnxNode) -> tuple[int, ...]:
    if len(node.shape(0)) != 4:
        raise UserError("an operand of rank 4 is needed", found=list(node.shape(0)))
    return node.shape(0)


def trilu(node: OnnxNode) -> list[SSAValue]:
    """Zero below (upper) or above a diagonal, by a constant mask."""
    x, shape = node[0], node.shape(0)
    if len(shape) < 2:
        raise UserError("an operand of rank at least 2 is needed", found=list(shape))
    if math.prod(shape[-2:]) > MAX_CONSTANT:
        raise NotNative
    k = node.constant_int(1, "the diagonal") if node.has(1) else 0
    ones = np.ones(shape[-2:], np.bool_)
    mask = np.triu(ones, k) if node.flag("upper", True) else np.tril(ones, k)
    kept = node.build.expand(node.data(mask, "mask"), shape)
    return [node.build.where(kept, x, node.literal(0, x))]


def eye_like(node: OnnxNode) -> list[SSAValue]:
    """Ones on a diagonal; the operand gives only the shape."""
    shape = node.shape(0)
    if len(shape) != 2:
        raise UserError("an operand of rank 2 is needed", found=list(shape))
    element = node.value(0).element
    if "dtype" in node.attributes:
        element = element_of_number(node.int("dtype", 0), node.where)
    if element is None:
        raise NotNative
    if math.prod(shape) > MAX_CONSTANT:
        raise UserError("the matrix has too many elements", expected=f"at most {MAX_CONSTANT}")
    eye = np.eye(*shape, k=node.int("k", 0)).astype(to_numpy(element))
    return [node.data(eye, "eye")]


def center_crop_pad(node: OnnxNode) -> list[SSAValue]:
    """Crop or zero-pad each axis around its middle."""
    x, shape = node[0], node.shape(0)
    target = node.constant_ints(1, "the shape")
    axes = [node.axis(a, len(shape)) for a in node.ints("axes", range(len(shape)))]
    if len(axes) != len(target):
        raise UserError("one size per axis is needed", expected=len(axes), found=target)
    pads = [0] * (2 * len(shape))
    for k, n in zip(axes, target, strict=True):
        missing = n - shape[k]
        before = missing // 2 if missing > 0 else -((-missing) // 2)
        pads[k], pads[k + len(shape)] = before, missing - before
    return [node.build.pad(x, pads=pads) if any(pads) else x]


def range_(node: OnnxNode) -> list[SSAValue]:
    """A constant; a range that depends on data has no static shape."""
    bounds = [node.constant_number(k, "a bound") for k in range(3)]
    if range_size(node) > MAX_CONSTANT:
        raise UserError(f"the range has more than {MAX_CONSTANT} elements")
    dtype = node.constant(0, "a bound").dtype
    return [node.data(np.arange(*bounds).astype(dtype), "range")]
