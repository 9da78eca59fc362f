"""Random settings of the fused ops of onnxruntime's domain: attention, layers of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_nodes.draw import Draw, Generator, Sample

DOMAIN = "com.microsoft"


def _scale(d: Draw, shape: tuple[int, ...] = (), times: float = 1) -> np.ndarray:
    return np.asarray(d.rng.uniform(0.01, 0.1, shape) * times, np.float32)


def _mask(d: Draw, batch: int, length: int, total: int, kinds: int) -> Any:
    """None, keys' ends, a mask of keys, or of keys for each query."""
    match d.int(0, kinds):
        case 1:
            return d.array("int32", [batch], 1, total)
        case 2:
            mask = d.array("int32", [batch, total], 0, 1)
        case 3:
            mask = d.array("int32", [batch, length, total], 0, 1)
        case _:
            return None
    mask[..., 0] = 1
    return mask


def attention(d: Draw) -> Sample:
    batch, length, inner, heads = d.int(1, 3), d.int(1, 5), d.int(1, 6), d.int(1, 3)
    size = d.int(1, 4)
    read = d.int(1, 4) if d.flag(0.3) else size
    past = d.int(1, 3) if d.flag(0.4) and read == size else 0
    widths = [heads * size, heads * size, heads * read]
    total = past + length
    operands = [
        d.array("float32", [batch, length, inner]),
        d.array("float32", [inner, sum(widths)], -1, 1),
        d.array("float32", [sum(widths)]),
        _mask(d, batch, length, total, 3),
        d.array("float32", [2, batch, heads, past, size]) if past else None,
        d.array("float32", [d.pick((1, batch)), d.pick((1, heads)), length, total])
        if d.flag(0.3) else None,
    ]  # fmt: skip
    attributes: dict[str, Any] = {"num_heads": heads, "unidirectional": d.int(0, 1)}
    if d.flag(0.3):
        attributes["scale"] = 0.3
    if read != size or d.flag(0.2):
        attributes["qkv_hidden_sizes"] = widths
    if d.flag(0.2):
        attributes["mask_filter_value"] = -50.0
    return Sample("Attention", operands, attributes, 1, (True, bool(past)), domain=DOMAIN)


def multi_head(d: Draw) -> Sample:
    batch, length, heads, size = d.int(1, 3), d.int(1, 4), d.int(1, 3), d.int(1, 4)
    read = d.int(1, 4) if d.flag(0.3) else size
    cross = d.flag(0.5)
    keys = d.int(1, 5) if cross else length
    packed = d.flag(0.2) and not cross and read == size
    past = 0 if cross or packed or d.flag(0.6) or read != size else d.int(1, 3)
    q, k, v = ([batch, n, heads * w] for n, w in ((length, size), (keys, size), (keys, read)))
    operands: list[Any] = [d.array("float32", shape) for shape in (q, k, v)]
    if packed:
        operands = [d.array("float32", [batch, length, heads, 3, size]), None, None]
    by_heads = cross and d.flag(0.3) and read == size
    if by_heads:
        operands[1:] = [d.array("float32", [batch, heads, keys, size]) for _ in range(2)]
    bias = None if packed or d.flag() else d.array("float32", [heads * (2 * size + read)])
    total = past + keys
    operands += [bias, _mask(d, batch, length, total, 3)]
    added = d.array("float32", [d.pick((1, batch)), d.pick((1, heads)), length, total])
    operands.append(added if d.flag(0.3) else None)
    if past:
        operands += [d.array("float32", [batch, heads, past, size]) for _ in range(2)]
    attributes: dict[str, Any] = {"num_heads": heads}
    attributes["unidirectional"] = int(not cross and d.flag(0.4))
    if d.flag(0.3):
        attributes["scale"] = 0.3
    outputs = (True, past > 0, past > 0)
    return Sample("MultiHeadAttention", operands, attributes, 1, outputs, domain=DOMAIN)


def _angles(d: Draw, half: int) -> list[np.ndarray]:
    angles = d.array("float32", [12, half])
    return [np.cos(angles), np.sin(angles)]


def rotary(d: Draw) -> Sample:
    batch, length, heads, half = d.int(1, 3), d.int(1, 4), d.int(1, 3), d.int(1, 4)
    partly = d.flag(0.3)
    size = 2 * half + (2 * d.int(1, 2) if partly else 0)
    flat = d.flag()
    shape = [batch, length, heads * size] if flat else [batch, heads, length, size]
    places = d.array("int64", [1], 0, 7) if d.flag() else d.array("int64", [batch, length], 0, 11)
    attributes: dict[str, Any] = {"interleaved": d.int(0, 1)}
    if partly:
        attributes |= {"num_heads": heads, "rotary_embedding_dim": 2 * half}
    operands = [d.array("float32", shape), places, *_angles(d, half)]
    return Sample("RotaryEmbedding", operands, attributes, 1, domain=DOMAIN)


def group_query(d: Draw) -> Sample:
    batch, groups, half = d.int(1, 3), d.int(1, 2), 8
    heads, size = groups * d.int(1, 3), 2 * half
    past = d.int(1, 4) if d.flag() else 0
    length = 1 if past and d.flag(0.7) else d.int(1, 4)
    batch = 1 if past and length > 1 else batch
    total = past + length
    widths = [n * size for n in (heads, groups, groups)]
    parts: list[Any] = [d.array("float32", [batch, length, w]) for w in widths]
    if d.flag(0.3):
        parts = [d.array("float32", [batch, length, sum(widths)]), None, None]
    cache = [d.array("float32", [batch, groups, past, size]) if past else None for _ in range(2)]
    ends = np.full(batch, total - 1, np.int32)
    if past and length == 1 and d.flag():
        ends = d.array("int32", [batch], 0, total - 1)
        ends[0] = total - 1
    turns = d.flag()
    tables = _angles(d, half) if turns else [None, None]
    operands = [*parts, *cache, ends, np.asarray(total, np.int32), *tables]
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": groups}
    if turns:
        attributes |= {"do_rotary": 1, "rotary_interleaved": d.int(0, 1)}
    if d.flag(0.2):
        attributes["scale"] = 0.3
    if d.flag(0.2):
        attributes["local_window_size"] = d.int(1, 4)
    if d.flag(0.2):
        attributes["softcap"] = 2.0
    return Sample("GroupQueryAttention", operands, attributes, 1, (True, True, True),
                  constants=[6], domain=DOMAIN)  # fmt: skip


def quantised_attention(d: Draw) -> Sample:
    batch, length, inner, heads = d.int(1, 3), d.int(1, 5), d.int(1, 6), d.int(1, 3)
    size = d.int(1, 4)
    past = d.int(1, 3) if d.flag(0.3) else 0
    kind = d.pick(("uint8", "int8"))
    width = 3 * heads * size
    columns = (width,) if d.flag() else ()
    operands = [
        d.extreme("uint8", [batch, length, inner]),
        d.extreme(kind, [inner, width]),
        d.array("float32", [width]),
        _scale(d),
        _scale(d, columns, 0.05),
        _mask(d, batch, length, past + length, 2),
        np.asarray(d.int(0, 255), np.uint8) if d.flag() else None,
        d.array(kind, [], 0, 9) if d.flag() else None,
        d.array("float32", [2, batch, heads, past, size]) if past else None,
    ]
    attributes = {"num_heads": heads, "unidirectional": d.int(0, 1)}
    return Sample("QAttention", operands, attributes, 1, (True, bool(past)), domain=DOMAIN)


def quantised_embeddings(d: Draw) -> Sample:
    batch, length, width = d.int(1, 3), d.int(1, 4), d.int(1, 6)
    kinds = d.flag()
    ids = d.array("int32", [batch, length], 0, 8)
    mask = d.array("int32", [batch, length], 0, 1) if d.flag() else None
    tables: list[Any] = [d.extreme("uint8", [n, width]) for n in (9, 6, 2)]
    tables += [d.extreme("uint8", [width]) for _ in range(2)]
    scales: list[Any] = [_scale(d) for _ in range(5)]
    zeros: list[Any] = [np.asarray(d.int(0, 255), np.uint8) for _ in range(5)]
    segments = d.array("int32", [batch, length], 0, 1) if kinds else None
    for row in (tables, scales, zeros):
        row[2] = row[2] if kinds else None
    operands = [ids, segments, *tables, mask, *scales, *zeros]
    outputs = (True, True)
    return Sample("QEmbedLayerNormalization", operands, {"epsilon": 1e-3}, 1, outputs,
                  domain=DOMAIN, tolerance=1e-3)  # fmt: skip


def channels_last_pool(d: Draw) -> Sample:
    kernel = d.ints(1, 3, 2)
    attributes = {
        "kernel_shape": kernel, "strides": d.ints(1, 2, 2), "dilations": d.ints(1, 2, 2),
        "pads": [min(k - 1, d.int(0, 1)) for k in (*kernel, *kernel)], "ceil_mode": d.int(0, 1),
    }  # fmt: skip
    x = d.extreme(d.pick(("uint8", "int8")), [d.int(1, 2), d.int(5, 8), d.int(5, 8), d.int(1, 5)])
    return Sample("NhwcMaxPool", [x], attributes, 1, domain=DOMAIN)


def channels_last_conv(d: Draw) -> Sample:
    groups, into, out = d.int(1, 2), d.int(1, 3), d.int(1, 3)
    x = d.extreme("uint8", [d.int(1, 2), d.int(4, 7), d.int(4, 7), groups * into])
    w = d.extreme(d.pick(("uint8", "int8")), [groups * out, into, *d.ints(1, 3, 2)])
    bias = d.array("int32", [groups * out], -99, 99) if d.flag() else None
    zero = [np.asarray(d.int(0, 255), np.uint8) for _ in range(2)]
    columns = (groups * out,) if d.flag() else ()
    operands = [x, _scale(d), zero[0], w, _scale(d, columns), np.zeros(columns, w.dtype),
                _scale(d, times=50), zero[1], bias]  # fmt: skip
    attributes = {"channels_last": 1, "group": groups, "strides": d.ints(1, 2, 2),
                  "pads": d.ints(0, 1, 4)}  # fmt: skip
    constants = [3, 4, 5, 8] if bias is not None else [3, 4, 5]
    return Sample("QLinearConv", operands, attributes, 1, constants=constants, domain=DOMAIN)


def dynamic_lstm(d: Draw) -> Sample:
    steps, batch, inner, hidden = d.int(1, 5), d.int(1, 3), d.int(1, 6), d.int(1, 5)
    direction = d.pick(("forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1
    kind = d.pick(("uint8", "int8"))

    def weights(rows: int) -> list[np.ndarray]:
        shape = (ways, 4 * hidden) if d.flag() else (ways,)
        zero = np.full(shape, 128 if kind == "uint8" else 0, kind)
        return [d.extreme(kind, [ways, rows, 4 * hidden]), _scale(d, shape, 0.2), zero]

    (w, w_scale, w_zero), (r, r_scale, r_zero) = weights(inner), weights(hidden)
    state = [d.array("float32", [ways, batch, hidden], -1, 1) if d.flag() else None for _ in "hc"]
    operands = [
        d.array("float32", [steps, batch, inner]), w, r,
        d.array("float32", [ways, 8 * hidden]) if d.flag() else None, None, *state,
        d.array("float32", [ways, 3 * hidden]) if d.flag(0.3) else None,
        w_scale, w_zero, r_scale, r_zero,
    ]  # fmt: skip
    attributes: dict[str, Any] = {"direction": direction, "hidden_size": hidden}
    if d.flag(0.2):
        attributes["clip"] = 0.7
    if d.flag(0.2):
        attributes["input_forget"] = 1
    # x or the state may be rounded to another byte, which is 1/255 of its range.
    return Sample("DynamicQuantizeLSTM", operands, attributes, 1, (True, True, True),
                  constants=[1, 2, 8, 9, 10, 11], domain=DOMAIN, tolerance=1e-2)  # fmt: skip


def ordered_nbits(d: Draw) -> Sample:
    """MatMulNBits with an order of groups: onnxruntime has it for 4 bits without zero points."""
    block, k, n, bits = 16, d.pick((32, 48, 64)), d.int(1, 6), 4
    blocks = -(-k // block)
    packed = d.rng.integers(0, 255, (n, blocks, block * bits // 8), "uint8", endpoint=True)
    order = d.rng.integers(0, blocks, k).astype(np.int32)
    operands = [
        d.array("float32", [d.int(1, 3), k]), packed, _scale(d, (n * blocks,)),
        None, order, d.array("float32", [n]) if d.flag() else None,
    ]  # fmt: skip
    given = {"K": k, "N": n, "bits": bits, "block_size": block}
    constants = [j for j in (1, 2, 3, 4, 5) if operands[j] is not None]
    return Sample("MatMulNBits", operands, given, 1, constants=constants, domain=DOMAIN)


GENERATORS: dict[str, Generator] = {
    "Attention": attention,
    "DynamicQuantizeLSTM": dynamic_lstm,
    "GroupQueryAttention": group_query,
    "MatMulNBits, ordered groups": ordered_nbits,
    "MultiHeadAttention": multi_head,
    "NhwcMaxPool": channels_last_pool,
    "QAttention": quantised_attention,
    "QEmbedLayerNormalization": quantised_embeddings,
    "QLinearConv, channels last": channels_last_conv,
    "RotaryEmbedding": rotary,
}
