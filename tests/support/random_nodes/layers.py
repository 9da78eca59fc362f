"""Normalisations, products, losses, attention, transforms and moves, on odd dtypes too."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_nodes.draw import NUMBERS, Draw, Generator, Sample

ANY = (*NUMBERS, "bool")


def matmul(d: Draw) -> Sample:
    m, k, n, batch = d.int(1, 4), d.int(1, 4), d.int(1, 4), d.shape(0, 2, 3)
    dtype = d.pick(("float32", "float64", "int32", "uint32", "int64", "uint64"))
    return Sample(
        "MatMul",
        [d.array(dtype, [*batch, m, k]), d.array(dtype, [*batch, k, n])],
        {},
        d.opset("MatMul"),
    )


def gemm(d: Draw) -> Sample:
    m, k, n = d.int(1, 4), d.int(1, 4), d.int(1, 4)
    ta, tb = d.int(0, 1), d.int(0, 1)
    c = d.pick([None, [n], [m, 1], [m, n], [1], []])
    given: dict[str, Any] = {"transA": ta, "transB": tb}
    if d.flag():
        given |= {"alpha": d.float(0.5, 2), "beta": d.float(0.5, 2)}
    opset = d.int(11, 23)
    inputs = [
        d.array("float32", [k, m] if ta else [m, k]),
        d.array("float32", [n, k] if tb else [k, n]),
    ]
    return Sample("Gemm", [*inputs, None if c is None else d.array("float32", c)], given, opset)


def determinant(d: Draw) -> Sample:
    n = d.int(1, 4)
    return Sample("Det", [d.array("float32", [*d.shape(0, 2, 3), n, n])], {}, d.opset("Det"))


def layer_norm(d: Draw) -> Sample:
    shape = d.shape(1, 3)
    axis = d.int(-len(shape), len(shape) - 1)
    wide = shape[axis % len(shape) :]
    bias = d.array("float32", wide) if d.flag() else None
    named = (True, d.flag(0.3), d.flag(0.3))
    return Sample(
        "LayerNormalization",
        [d.array("float32", shape), d.array("float32", wide), bias],
        {"axis": axis, "epsilon": 1e-3},
        d.int(17, 23),
        named,
    )


def rms_norm(d: Draw) -> Sample:
    shape = d.shape(1, 3)
    axis = d.int(-len(shape), len(shape) - 1)
    wide = shape[axis % len(shape) :]
    given = {"axis": axis, "epsilon": 1e-3}
    inputs = [d.array("float32", shape), d.array("float32", wide)]
    return Sample("RMSNormalization", inputs, given, 23)


def tf_idf(d: Draw) -> Sample:
    """Counts of single words and pairs of words, with skips between."""
    words = d.array("int32", d.pick([[8], [2, 8]]), 0, 5)
    singles = [int(v) for v in d.rng.permutation(6)[:3]]
    pairs = [d.ints(0, 5, 2) for _ in range(3)]
    pairs = [list(p) for p in dict.fromkeys(map(tuple, pairs))]
    given: dict[str, Any] = {
        "mode": d.pick(["TF", "IDF", "TFIDF"]),
        "min_gram_length": 1,
        "max_gram_length": 2,
        "max_skip_count": d.int(0, 3),
        "ngram_counts": [0, len(singles)],
        "ngram_indexes": list(range(len(singles) + len(pairs))),
        "pool_int64s": [*singles, *(v for pair in pairs for v in pair)],
    }
    if d.flag():
        given["weights"] = [d.float(0.5, 2) for _ in given["ngram_indexes"]]
    return Sample("TfIdfVectorizer", [words], given, d.int(9, 23))


def group_norm(d: Draw) -> Sample:
    groups = d.int(1, 3)
    c = groups * d.int(1, 2)
    opset = d.int(18, 23)
    wide = [c] if opset >= 21 else [groups]
    x = d.array("float32", [d.int(1, 2), c, *d.shape(1, 2)])
    return Sample(
        "GroupNormalization",
        [x, d.array("float32", wide), d.array("float32", wide)],
        {"num_groups": groups, "epsilon": 1e-3},
        opset,
    )


def instance_norm(d: Draw) -> Sample:
    c = d.int(1, 3)
    x = d.array("float32", [d.int(1, 2), c, *d.shape(1, 2)])
    return Sample(
        "InstanceNormalization",
        [x, d.array("float32", [c]), d.array("float32", [c])],
        {"epsilon": 1e-3},
        d.opset("InstanceNormalization"),
    )


def batch_norm(d: Draw) -> Sample:
    c = d.int(1, 3)
    x = d.array("float32", [d.int(1, 2), c, *d.shape(0, 2)])
    row = [d.array("float32", [c]) for _ in range(3)]
    return Sample(
        "BatchNormalization",
        [x, *row, d.array("float32", [c], 0.1, 2)],
        {"epsilon": 1e-3} if d.flag() else {},
        d.opset("BatchNormalization"),
    )


def lrn(d: Draw) -> Sample:
    given: dict[str, Any] = {"size": d.pick([1, 3, 5])}
    given |= {n: d.float(0.1, 1) for n in ("alpha", "beta", "bias") if d.flag()}
    return Sample(
        "LRN",
        [d.array("float32", [d.int(1, 2), d.int(1, 6), *d.ints(1, 3, 2)])],
        given,
        d.opset("LRN"),
    )


def mvn(d: Draw) -> Sample:
    given = {"axes": [0, 2, 3]} if d.flag() else {}
    return Sample(
        "MeanVarianceNormalization",
        [d.array("float32", d.ints(2, 4, 4))],
        given,
        d.opset("MeanVarianceNormalization", 9),
    )


def loss(op_type: str) -> Generator:
    def draw(d: Draw) -> Sample:
        n, c, rest = d.int(1, 3), d.int(2, 4), d.shape(0, 2, 3)
        x = d.array("float32", [n, c, *rest])
        target = np.asarray(d.rng.integers(0, c, [n, *rest]), d.pick(["int32", "int64"]))
        given: dict[str, Any] = (
            {"reduction": d.pick(["none", "mean", "sum"])} if d.flag(0.8) else {}
        )
        if d.flag(0.3):
            given["ignore_index"] = d.int(0, c - 1)
        weight = d.array("float32", [c], 0.1, 1) if d.flag() else None
        named = (True, d.flag()) if op_type == "SoftmaxCrossEntropyLoss" else (True,)
        if given.get("reduction", "mean") == "mean" and "ignore_index" in given:
            given["ignore_index"] = -1  # all may be ignored: nothing to take a mean of
        return Sample(op_type, [x, target, weight], given, d.opset(op_type), named)

    return draw


def attention(d: Draw) -> Sample:
    b, q, k, size, v = d.int(1, 2), d.int(1, 4), d.int(1, 4), d.int(1, 2) * 2, d.int(1, 4)
    kv = d.int(1, 2)
    heads = kv * d.int(1, 2)
    given: dict[str, Any] = {}
    if d.flag():
        given["scale"] = d.float(0.2, 1)
    if d.flag(0.3):
        given["softcap"] = d.float(1, 3)
    if d.flag(0.3):
        given["is_causal"] = 1
    flat = d.flag()
    if flat:
        given |= {"q_num_heads": heads, "kv_num_heads": kv}
        inputs = [
            d.array("float32", [b, q, heads * size]),
            d.array("float32", [b, k, kv * size]),
            d.array("float32", [b, k, kv * v]),
        ]
    else:
        inputs = [
            d.array("float32", [b, heads, q, size]),
            d.array("float32", [b, kv, k, size]),
            d.array("float32", [b, kv, k, v]),
        ]
    mask = None
    if d.flag() and "is_causal" not in given:
        shape = d.pick([[q, k], [b, 1, q, k], [b, heads, q, k]])
        mask = d.array("float32", shape)
    return Sample("Attention", [*inputs, mask], given, 23)


def rotary(d: Draw) -> Sample:
    b, heads, s, half = d.int(1, 2), d.int(1, 2), d.int(1, 4), d.int(1, 3)
    size = 2 * half
    given: dict[str, Any] = {"interleaved": d.int(0, 1)}
    flat = d.flag()
    if flat:
        given["num_heads"] = heads
    shape = [b, s, heads * size] if flat else [b, heads, s, size]
    if d.flag():
        cache = [s + 2, half]
        positions = np.asarray(d.rng.integers(0, s + 2, [b, s]), np.int64)
        return Sample(
            "RotaryEmbedding",
            [
                d.array("float32", shape),
                d.array("float32", cache),
                d.array("float32", cache),
                positions,
            ],
            given,
            23,
        )
    cache = [b, s, half]
    return Sample(
        "RotaryEmbedding",
        [d.array("float32", shape), d.array("float32", cache), d.array("float32", cache)],
        given,
        23,
    )


def dft(d: Draw) -> Sample:
    inverse, onesided = d.int(0, 1), 0
    shape = [d.int(1, 2), d.int(1, 6), d.int(1, 4), 2 if inverse else d.int(1, 2)]
    if shape[-1] == 1 and not inverse:
        onesided = d.int(0, 1)
    opset = d.int(17, 23)
    axis = d.int(1, 2)
    length = np.asarray(d.int(1, 7), np.int64) if d.flag(0.4) else None
    given: dict[str, Any] = {"inverse": inverse, "onesided": onesided}
    x = d.array("float32", shape)
    if opset < 20:
        given["axis"] = axis
        return Sample("DFT", [x, length], given, opset, constants=[1] if length is not None else [])
    inputs = [x, length, np.asarray(axis, np.int64)]
    return Sample("DFT", inputs, given, opset, constants=[1, 2] if length is not None else [2])


def stft(d: Draw) -> Sample:
    frame, step = d.int(2, 5), d.int(1, 3)
    signal = d.array("float32", [d.int(1, 2), frame + d.int(0, 8), 1])
    window = d.array("float32", [frame], 0.1, 1) if d.flag() else None
    length = np.asarray(frame, np.int64) if window is None or d.flag() else None
    given = {"onesided": d.int(0, 1)} if d.flag() else {}
    constants = [1] if length is None else [1, 3]
    return Sample(
        "STFT",
        [signal, np.asarray(step, np.int64), window, length],
        given,
        d.int(17, 23),
        constants=constants,
    )


def window(op_type: str) -> Generator:
    def draw(d: Draw) -> Sample:
        given: dict[str, Any] = {"periodic": d.int(0, 1)} if d.flag() else {}
        size = np.asarray(d.int(2, 9), d.pick(["int32", "int64"]))
        return Sample(op_type, [size], given, d.int(17, 23), constants=[0])

    return draw


def mel(d: Draw) -> Sample:
    bins, length, rate = d.int(3, 8), 2 * d.int(8, 20), d.pick([8000, 16000])
    low, high = d.float(0, 100), d.float(2000, 4000)
    inputs = [np.asarray(v, np.int64) for v in (bins, length, rate)]
    inputs += [np.asarray(v, np.float32) for v in (low, high)]
    return Sample("MelWeightMatrix", inputs, {}, d.int(17, 23), constants=[0, 1, 2, 3, 4])


def pad(d: Draw) -> Sample:
    shape, opset = d.shape(1, 3), d.int(11, 23)
    mode = d.pick(["constant", "reflect", "edge"] + (["wrap"] if opset >= 19 else []))
    dtype = d.pick(
        ("float32", "float64", "int8", "uint8", "int32", "uint32", "int64", "uint64", "bool")
        if opset >= 13
        else ("float32", "float64", "int32", "int64")
    )
    lows = [
        d.int(0, max(n - 1, 0)) if mode != "constant" else d.int(-min(1, n - 1), 3)
        for n in shape * 2
    ]
    value = d.array(dtype, []) if d.flag() and mode == "constant" else None
    constants = [1] if value is None else [1, 2]
    return Sample(
        "Pad",
        [d.array(dtype, shape), np.asarray(lows, np.int64), value],
        {"mode": mode},
        opset,
        constants=constants,
    )


def moves(op_type: str) -> Generator:
    def draw(d: Draw) -> Sample:
        dtype, shape = d.pick(ANY), d.shape(1, 4)
        x = d.array(dtype, shape)
        match op_type:
            case "Tile":
                return Sample(
                    op_type,
                    [x, np.asarray(d.ints(1, 3, len(shape)), np.int64)],
                    {},
                    d.opset(op_type),
                    constants=[1],
                )
            case "Transpose":
                perm = [int(k) for k in d.rng.permutation(len(shape))]
                return Sample(op_type, [x], {"perm": perm} if d.flag(0.8) else {}, d.opset(op_type))
            case "Expand":
                wide = [n if n > 1 else d.int(1, 3) for n in shape]
                return Sample(
                    op_type,
                    [x, np.asarray([*d.shape(0, 1), *wide], np.int64)],
                    {},
                    d.opset(op_type),
                    constants=[1],
                )
            case "Concat":
                axis = d.int(0, len(shape) - 1)
                other = [d.int(1, 3) if k == axis else n for k, n in enumerate(shape)]
                return Sample(op_type, [x, d.array(dtype, other)], {"axis": axis}, d.opset(op_type))
            case "Trilu":
                x = d.array(dtype, [*d.shape(0, 2), *d.ints(1, 5, 2)])
                k = np.asarray(d.int(-4, 4), np.int64) if d.flag() else None
                return Sample(
                    op_type,
                    [x, k],
                    {"upper": d.int(0, 1)} if d.flag() else {},
                    d.int(14, 23),
                    constants=[] if k is None else [1],
                )
            case "EyeLike":
                given: dict[str, Any] = {"k": d.int(-3, 3)} if d.flag() else {}
                if d.flag():
                    given["dtype"] = d.pick([1, 6, 7, 11])
                kind = d.pick(("float32", "float64", "int32", "int64", "uint64"))
                return Sample(op_type, [d.array(kind, d.ints(1, 5, 2))], given, d.opset(op_type))
            case _:
                raise ValueError(op_type)

    return draw


def space(op_type: str) -> Generator:
    def draw(d: Draw) -> Sample:
        block, dtype = d.int(1, 3), d.pick(("float32", "float64", "uint8"))
        n, c, h, w = d.ints(1, 2, 4)
        opset = d.opset(op_type)
        if op_type == "SpaceToDepth":
            return Sample(
                op_type, [d.array(dtype, [n, c, h * block, w * block])], {"blocksize": block}, opset
            )
        given: dict[str, Any] = {"blocksize": block}
        if opset >= 11 and d.flag():
            given["mode"] = d.pick(["DCR", "CRD"])
        return Sample(op_type, [d.array(dtype, [n, c * block * block, h, w])], given, opset)

    return draw


def slice_(d: Draw) -> Sample:
    shape = d.shape(1, 3, 6)
    axes = [int(a) for a in d.rng.permutation(len(shape))[: d.int(1, len(shape))]]
    starts, ends = d.ints(-7, 7, len(axes)), d.ints(-8, 8, len(axes))
    steps = [d.pick([1, 1, 2, -1, -2]) for _ in axes]
    arrays = [np.asarray(v, np.int64) for v in (starts, ends, axes, steps)]
    return Sample(
        "Slice", [d.array(d.pick(ANY), shape), *arrays], {}, d.int(11, 23), constants=[1, 2, 3, 4]
    )


GENERATORS: dict[str, Generator] = {
    "MatMul": matmul,
    "Gemm": gemm,
    "Det": determinant,
    "LayerNormalization": layer_norm,
    "GroupNormalization": group_norm,
    "InstanceNormalization": instance_norm,
    "BatchNormalization": batch_norm,
    "LRN": lrn,
    "RMSNormalization": rms_norm,
    "TfIdfVectorizer": tf_idf,
    "MeanVarianceNormalization": mvn,
    "NegativeLogLikelihoodLoss": loss("NegativeLogLikelihoodLoss"),
    "SoftmaxCrossEntropyLoss": loss("SoftmaxCrossEntropyLoss"),
    "Attention": attention,
    "RotaryEmbedding": rotary,
    "DFT": dft,
    "STFT": stft,
    **{op: window(op) for op in ("BlackmanWindow", "HammingWindow", "HannWindow")},
    "MelWeightMatrix": mel,
    "Pad": pad,
    "Slice": slice_,
    **{op: moves(op) for op in ("Tile", "Transpose", "Expand", "Concat", "Trilu", "EyeLike")},
    **{op: space(op) for op in ("SpaceToDepth", "DepthToSpace")},
}
