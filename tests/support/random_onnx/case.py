"""What a random model must compute on its inputs, and how exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import onnx

from support.random_onnx.runtime import session_of

Array = np.ndarray

# How far beyond the spread of the noisy twins a result may be.
SLACK = 32.0


def is_float(dtype: np.dtype) -> bool:
    """Whether a dtype is a float, ml_dtypes' included."""
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def epsilon(dtype: np.dtype) -> float:
    """The relative spacing of a float dtype."""
    return float(ml_dtypes.finfo(dtype).eps)


@dataclass
class Value:
    """A tensor of the model: its name, what onnxruntime computed, and its noisy twins.

    `grain` is the relative spacing of the coarsest floats that it was computed from.
    """

    name: str
    array: Array
    twins: tuple[Array, Array]
    is_input: bool = False
    grain: float = 0.0

    def __post_init__(self) -> None:
        if self.is_float:
            self.grain = max(self.grain, epsilon(self.dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def rank(self) -> int:
        return self.array.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def is_float(self) -> bool:
        return is_float(self.dtype)

    def bound(self) -> Array:
        """By position, how far another result may be from `array`; inf where nothing is said."""
        exact = self.array.astype(np.float64)
        if not self.is_float:
            return np.zeros(exact.shape)
        with np.errstate(all="ignore"):
            twins = [t.astype(np.float64) for t in self.twins]
            spread = np.max([np.abs(t - exact) for t in twins], axis=0, initial=0.0)
            finite = np.isfinite(exact) & np.all([np.isfinite(t) for t in twins], axis=0)
            scale = np.abs(exact[np.isfinite(exact)]).max(initial=0.0)
            bound = SLACK * spread + 8 * self.grain * (np.abs(exact) + 0.5 * scale)
            # onnxruntime's Sigmoid and Softplus err by so much near 0: they are 0 at -25.
            bound += self.grain + 16 * float(ml_dtypes.finfo(self.dtype).smallest_normal)
        same_kind = np.all([_kind(t) == _kind(exact) for t in twins], axis=0)
        bound = np.where(finite, bound, np.where(same_kind, 0.0, np.inf))
        return np.where(spread > 0.05 * np.maximum(np.abs(exact), 1e-3), np.inf, bound)


def _kind(array: Array) -> Array:
    """0 for finite numbers, 1 for NaN, 2 and 3 for the infinities."""
    return np.isnan(array) * 1 + np.isposinf(array) * 2 + np.isneginf(array) * 3


@dataclass(frozen=True)
class Difference:
    """The first position at which a result is wrong."""

    output: str
    position: tuple[int, ...]
    expected: object
    found: object
    allowed: float

    def __str__(self) -> str:
        return (
            f"output '{self.output}' at {list(self.position)}: expected {self.expected!r}, "
            f"found {self.found!r} (allowed {self.allowed:.3g})"
        )


@dataclass
class Case:
    """One model, its inputs, and every value of it as onnxruntime computes it."""

    seed: int
    model: onnx.ModelProto
    inputs: dict[str, Array]
    values: dict[str, Value] = field(repr=False, default_factory=dict)

    @property
    def operators(self) -> list[str]:
        """The op types in order."""
        return [node.op_type for node in self.model.graph.node]

    def difference(self, found: Mapping[str, Array]) -> Difference | None:
        """The first output position that differs by more than rounding explains."""
        for output in self.model.graph.output:
            value = self.values[output.name]
            got = np.asarray(found[output.name])
            if got.shape != value.shape or got.dtype != value.dtype:
                want = f"{value.dtype}{list(value.shape)}"
                return Difference(output.name, (), want, f"{got.dtype}{list(got.shape)}", 0.0)
            position = _first_wrong(value, got)
            if position is not None:
                allowed = float(value.bound()[position])
                want, is_ = value.array[position], got[position]
                return Difference(output.name, position, want.item(), is_.item(), allowed)
        return None

    def run_onnxruntime(self) -> dict[str, Array] | None:
        """The outputs, the model run as a whole; None where onnxruntime refuses."""
        session = session_of(self.model)
        if session is None:
            return None
        names = [o.name for o in session.get_outputs()]
        try:
            found = session.run(names, {i.name: self.inputs[i.name] for i in session.get_inputs()})
        except Exception:  # noqa: BLE001 - it reuses buffers of another size in rare models
            return None
        return dict(zip(names, found, strict=True))

    def with_outputs(self, names: list[str]) -> Case:
        """The same model with other outputs, and only the nodes that these need."""
        graph = onnx.GraphProto()
        graph.CopyFrom(self.model.graph)
        wanted, kept = set(names), []
        for node in reversed(graph.node):
            if wanted.intersection(node.output):
                kept.append(node)
                wanted.update(node.input)
                for attribute in node.attribute:
                    for inner in attribute.g.node:
                        wanted.update(inner.input)
        del graph.node[:], graph.output[:]
        graph.node.extend(reversed(kept))
        for name in names:
            value = self.values[name]
            number = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
            graph.output.append(onnx.helper.make_tensor_value_info(name, number, list(value.shape)))
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        model.graph.CopyFrom(graph)
        return Case(self.seed, model, self.inputs, self.values)


def _first_wrong(value: Value, got: Array) -> tuple[int, ...] | None:
    if not value.is_float:
        wrong = got != value.array
    else:
        exact, other, bound = value.array.astype(float), got.astype(float), value.bound()
        with np.errstate(all="ignore"):
            close = (np.abs(exact - other) <= bound) | np.isinf(bound)
        wrong = ~(close | (exact == other) | (np.isnan(exact) & np.isnan(other)))
    if not np.any(wrong):
        return None
    return tuple(int(k) for k in np.argwhere(wrong)[0])
