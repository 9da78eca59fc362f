"""Give every dynamic dim of the inputs a number, or name the flag that does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from ...dialects.dims import Dim, shown
from ...dialects.errors import UserError, did_you_mean
from .tensor_data import element_of_number


class UnboundDims(UserError):
    """An input has dims without a number, and a program of fixed shapes is asked for.

    Cause: the model was exported with dynamic dims.

    Example: an input of dims [batch, 3, 224, 224].

    Fix: bind them by `--shape`; a session of `isoform.compile` binds them when it runs.
    """


@dataclass(frozen=True)
class DeclaredInput:
    """An input as declared in the file: dims are numbers, symbols, or None; perhaps no rank."""

    name: str
    number: int
    dims: tuple[Dim, ...] | None

    @property
    def is_static(self) -> bool:
        return self.dims is not None and all(isinstance(d, int) for d in self.dims)


def declared_inputs(graph: onnx.GraphProto) -> list[DeclaredInput]:
    """The inputs that are not initialisers, in order.

    Raises:
        UserError: two share a name, or one is not a tensor.
    """
    weights = {t.name for t in graph.initializer}
    found: dict[str, DeclaredInput] = {}
    for info in graph.input:
        if info.name in found:
            raise UserError(f"two inputs are named '{info.name}'", where="the graph's inputs")
        if info.name not in weights:
            found[info.name] = _declared(info)
    return list(found.values())


def _declared(info: onnx.ValueInfoProto) -> DeclaredInput:
    where = f"input '{info.name}'"
    kind = info.type.WhichOneof("value")
    if not info.name:
        raise UserError("an input has no name", where="the graph's inputs")
    if kind is None:
        raise UserError("it has no type", where=where)
    if kind != "tensor_type":
        name = kind.removesuffix("_type").replace("_", " ")
        raise UserError(f"it is a value of kind {name}: not supported", where=where)
    tensor = info.type.tensor_type
    element_of_number(tensor.elem_type, where)
    return DeclaredInput(info.name, tensor.elem_type, declared_dims(info))


def declared_dims(info: onnx.ValueInfoProto) -> tuple[Dim, ...] | None:
    """The dims that a value is declared with; None where it has no rank."""
    tensor = info.type.tensor_type
    return tuple(_dim(d) for d in tensor.shape.dim) if tensor.HasField("shape") else None


def _dim(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    # Some exporters write "?" for an unknown name: two of them need not be equal.
    return None if dim.dim_param.strip() in ("", "?") else dim.dim_param


def bind(
    inputs: Sequence[DeclaredInput], shapes: Mapping[str, Sequence[int]]
) -> dict[str, tuple[int, ...]]:
    """The shape of every input: declared, given, or derived from a symbol that a given shape fixes.

    Args:
        shapes: by an input's name its shape, by a symbol's name its number alone.

    Raises:
        UserError: a shape is given for no input or contradicts the file; a dim is still unknown.
    """
    _check_names(inputs, shapes)
    symbols = _symbols(inputs, shapes)
    bound: dict[str, tuple[int, ...]] = {}
    for entry in inputs:
        if entry.name in shapes:
            bound[entry.name] = tuple(int(n) for n in shapes[entry.name])
            continue
        dims = _resolve(entry, symbols)
        if dims is None or not all(isinstance(d, int) for d in dims):
            raise _unbound(inputs, shapes, symbols)
        bound[entry.name] = tuple(d for d in dims if isinstance(d, int))
    return bound


def _check_names(inputs: Sequence[DeclaredInput], shapes: Mapping[str, Sequence[int]]) -> None:
    names = [entry.name for entry in inputs]
    symbols = named_dims(inputs)
    for name, given in shapes.items():
        if name not in names and name not in symbols:
            close = did_you_mean(name, [*names, *symbols])
            raise UserError(
                f"the model has no input or dim '{name}'",
                where="--shape",
                hint=close or f"its inputs are {', '.join(names) or 'none'}",
            )
        if name not in names and len(given) != 1:
            raise UserError(f"dim '{name}' takes one number", where=_flag(name, given))


def named_dims(inputs: Sequence[DeclaredInput]) -> list[str]:
    """The symbols among the inputs' dims, in order."""
    found = [d for entry in inputs for d in entry.dims or () if isinstance(d, str)]
    return list(dict.fromkeys(found))


def _symbols(
    inputs: Sequence[DeclaredInput], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """Numbers of the symbolic dims that given shapes fix."""
    names = {entry.name for entry in inputs}
    for name, given in shapes.items():
        if any(n < 0 for n in given):
            raise UserError("dims are not negative", where=_flag(name, given))
    symbols = {name: int(given[0]) for name, given in shapes.items() if name not in names}
    for entry in inputs:
        given = shapes.get(entry.name)
        if given is None:
            continue
        flag = _flag(entry.name, given)
        if entry.dims is None:
            continue
        if len(given) != len(entry.dims):
            raise UserError(
                "the input has another rank", where=flag, expected=len(entry.dims), found=len(given)
            )
        for n, dim in zip(given, entry.dims, strict=True):
            fixed = symbols.setdefault(dim, n) if isinstance(dim, str) else dim
            if fixed is not None and fixed != n:
                name = f"dim '{dim}'" if isinstance(dim, str) else "a dim"
                raise UserError(f"{name} has another size", where=flag, expected=fixed, found=n)
    return symbols


def _flag(name: str, dims: Sequence[int]) -> str:
    return f"--shape {name}={','.join(map(str, dims))}"


def _resolve(entry: DeclaredInput, symbols: Mapping[str, int]) -> tuple[Dim, ...] | None:
    if entry.dims is None:
        return None
    return tuple(symbols.get(d, d) if isinstance(d, str) else d for d in entry.dims)


def flags(
    inputs: Sequence[DeclaredInput],
    symbols: Mapping[str, int] | None = None,
    given: Sequence[str] = (),
) -> list[str]:
    """The fewest `--shape` flags that bind all unknown dims, with 1 for each."""
    known = dict(symbols or {})
    found: list[str] = []
    for entry in inputs:
        dims = _resolve(entry, known)
        if entry.name in given or (dims is not None and all(isinstance(d, int) for d in dims)):
            continue
        numbers = [d if isinstance(d, int) else 1 for d in dims] if dims is not None else [1]
        known |= {d: 1 for d in dims or () if isinstance(d, str)}
        found.append(_flag(entry.name, numbers))
    return found


def _unbound(
    inputs: Sequence[DeclaredInput], shapes: Mapping[str, Sequence[int]], symbols: Mapping[str, int]
) -> UnboundDims:
    unknown = [
        entry
        for entry in inputs
        if entry.name not in shapes
        and (
            entry.dims is None
            or not all(isinstance(d, int) for d in _resolve(entry, symbols) or ())
        )
    ]
    first = unknown[0]
    known = "an unknown rank" if first.dims is None else f"dims {shown(first.dims)}"
    return UnboundDims(
        f"input '{first.name}' has {known}",
        hint=f"add {' '.join(flags(inputs, symbols, list(shapes)))}",
    )
