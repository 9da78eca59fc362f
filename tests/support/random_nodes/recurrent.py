"""LSTM, GRU and RNN over all their attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_nodes.draw import Draw, Generator, Sample

# onnxruntime's parameters of an activation: whether alpha and beta are read.
ACTIVATIONS = {
    "Relu": (False, False), "Tanh": (False, False), "Sigmoid": (False, False),
    "Affine": (True, True), "LeakyRelu": (True, False), "ThresholdedRelu": (True, False),
    "ScaledTanh": (True, True), "HardSigmoid": (True, True), "Elu": (True, False),
    "Softsign": (False, False), "Softplus": (False, False),
}  # fmt: skip


def recurrent(op_type: str, gates: int, functions: int) -> Generator:
    """Any direction, lengths, clip, activations with parameters, peepholes, coupled gates."""

    def draw(d: Draw) -> Sample:
        steps, batch, size, hidden = d.int(1, 5), d.int(1, 3), d.size(1, 4), d.size(1, 4)
        dtype = "float32"
        direction = d.pick(["forward", "reverse", "bidirectional"])
        ways = 2 if direction == "bidirectional" else 1
        attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
        inputs: list[Any] = [
            d.array(dtype, [steps, batch, size], -0.7, 0.7),
            d.array(dtype, [ways, gates * hidden, size], -0.7, 0.7),
            d.array(dtype, [ways, gates * hidden, hidden], -0.7, 0.7),
            d.array(dtype, [ways, 2 * gates * hidden], -0.7, 0.7) if d.flag() else None,
            np.asarray(d.ints(0, steps, batch), np.int32) if d.flag() else None,
            d.array(dtype, [ways, batch, hidden], -0.7, 0.7) if d.flag() else None,
        ]
        if op_type == "LSTM":
            inputs.append(d.array(dtype, [ways, batch, hidden], -0.7, 0.7) if d.flag() else None)
            inputs.append(d.array(dtype, [ways, 3 * hidden], -0.7, 0.7) if d.flag() else None)
            if d.flag(0.3):
                attributes["input_forget"] = 1
        if op_type == "GRU" and d.flag():
            attributes["linear_before_reset"] = 1
        if d.flag(0.3):
            attributes["clip"] = d.float(0.2, 1.5)
        if d.flag():
            names = [d.pick(list(ACTIVATIONS)) for _ in range(functions * ways)]
            attributes["activations"] = names
            # All are given, or none where each has a default on which all agree.
            if d.flag() or {"Affine", "ScaledTanh", "ThresholdedRelu"} & set(names):
                alphas = [n for n in names if ACTIVATIONS[n][0]]
                betas = [n for n in names if ACTIVATIONS[n][1]]
                if alphas:
                    attributes["activation_alpha"] = [d.float(0.2, 1.2) for _ in alphas]
                if betas:
                    attributes["activation_beta"] = [d.float(0.2, 1.2) for _ in betas]
        if d.flag(0.3):
            attributes["layout"] = 1
            for k in (0, 5, 6):
                if k < len(inputs) and inputs[k] is not None:
                    inputs[k] = np.ascontiguousarray(np.swapaxes(inputs[k], 0, 1))
        results = 3 if op_type == "LSTM" else 2
        constants = [4] if d.flag() and inputs[4] is not None else []
        named = [d.flag(0.8) for _ in range(results)]
        named[d.int(0, results - 1)] = True
        opset = d.int(14, 23) if "layout" in attributes else d.int(7, 23)
        return Sample(op_type, inputs, attributes, opset, named, constants)

    return draw


GENERATORS: dict[str, Generator] = {
    "LSTM": recurrent("LSTM", 4, 3),
    "GRU": recurrent("GRU", 3, 2),
    "RNN": recurrent("RNN", 1, 1),
}
