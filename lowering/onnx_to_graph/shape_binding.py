"""Give every dynamic dim of the inputs a number, or name the flag that does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from ...dialects.dims import Dim, shown
from ...dialects.errors import UnboundDims, UserError, did_you_mean
from .tensor_data import element_of_number


@dataclass(frozen=True)
class DeclaredInput:
    """An input as declared in the file: dims are numbers, symbols, or None; perhaps no rank."""

    name: str
    number: int
    dims: tuple[Dim, ...] | None

    @property
    def is_static(self) -> bool:
        return self.dims is not None and all(isinstance(d, int) for d in self.dims)


def declared_inputs(
    graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]] | None = None
) -> list[DeclaredInput]:
    """The inputs that are not initialisers, in order; a sequence is one for each of its tensors.

    Args:
        shapes: also the lengths of sequences.

    Raises:
        UserError: two share a name, one is not of tensors, or a sequence's length is unknown.
    """
    weights = {t.name for t in graph.initializer}
    found: dict[str, DeclaredInput] = {}
    for info in graph.input:
        if info.name in weights and info.name not in found:
            continue
        for entry in _declared(info, shapes or {}):
            if entry.name in found:
                raise UserError(f"two inputs are named '{entry.name}'", where="the graph's inputs")
            found[entry.name] = entry
    return list(found.values())


def _declared(
    info: onnx.ValueInfoProto, shapes: Mapping[str, Sequence[int]]
) -> list[DeclaredInput]:
    where = f"input '{info.name}'"
    if not info.name:
        raise UserError("an input has no name", where="the graph's inputs")
    if info.type.WhichOneof("value") is None:
        raise UserError("it has no type", where=where)
    listed, type_ = held_type(info.type, where)
    number = type_.tensor_type.elem_type
    element_of_number(number, where)
    dims = _dims(type_)
    if not listed:
        return [DeclaredInput(info.name, number, dims)]
    if dims is not None:  # entries may differ in what has a name
        dims = tuple(d if isinstance(d, int) else None for d in dims)
    names = [f"{info.name}.{k}" for k in range(_length(info.name, shapes))]
    return [DeclaredInput(name, number, dims) for name in names]


def held_type(type_: onnx.TypeProto, where: str) -> tuple[bool, onnx.TypeProto]:
    """Whether a type is a sequence, perhaps optional, and the type of the tensors in it.

    Raises:
        UserError: it holds no tensors.
    """
    type_ = _without_optional(type_)
    listed = type_.WhichOneof("value") == "sequence_type"
    held = type_.sequence_type.elem_type if listed else type_
    kind = held.WhichOneof("value") or "no_type"
    if kind != "tensor_type":
        name = kind.removesuffix("_type").replace("_", " ")
        raise UserError(f"it is a value of kind {name}: not supported", where=where)
    return listed, held


def _without_optional(type_: onnx.TypeProto) -> onnx.TypeProto:
    optional = type_.WhichOneof("value") == "optional_type"
    return type_.optional_type.elem_type if optional else type_


def _length(name: str, shapes: Mapping[str, Sequence[int]]) -> int:
    """How many tensors a sequence holds: given, or those whose shapes are given."""
    if name in shapes:
        given = shapes[name]
        if len(given) != 1 or given[0] < 0:
            raise UserError(f"sequence '{name}' takes its length", where=_flag(name, given))
        return int(given[0])
    known = (key.removeprefix(f"{name}.") for key in shapes if key.startswith(f"{name}."))
    places = [int(place) for place in known if place.isdecimal()]
    if not places:
        raise UserError(
            f"input '{name}' is a sequence: its length must be known",
            hint=f"add --shape {name}=LENGTH, or --shape {name}.0=DIMS for each tensor in it",
        )
    return max(places) + 1


def sequence_inputs(graph: onnx.GraphProto) -> list[str]:
    """Names of the inputs that are sequences, perhaps optional."""
    types = ((info.name, _without_optional(info.type)) for info in graph.input)
    return [name for name, type_ in types if type_.WhichOneof("value") == "sequence_type"]


def without_lengths(
    graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]
) -> dict[str, Sequence[int]]:
    """What is given but the lengths of sequences."""
    lists = sequence_inputs(graph)
    return {name: given for name, given in shapes.items() if name not in lists}


def declared_dims(info: onnx.ValueInfoProto) -> tuple[Dim, ...] | None:
    """The dims that a value is declared with; None where it has no rank."""
    return _dims(info.type)


def _dims(type_: onnx.TypeProto) -> tuple[Dim, ...] | None:
    tensor = type_.tensor_type
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
    bound: dict[str, tuple[int, ...]] = {}
    for name, dims in bound_dims(inputs, shapes).items():
        if not all(isinstance(d, int) for d in dims):
            raise _unbound(inputs, shapes, _symbols(inputs, shapes))
        bound[name] = tuple(d for d in dims if isinstance(d, int))
    return bound


def bound_dims(
    inputs: Sequence[DeclaredInput], shapes: Mapping[str, Sequence[int]]
) -> dict[str, tuple[Dim, ...]]:
    """As `bound`, with symbols and None for the dims that nothing fixes.

    Raises:
        UserError: a shape is given for no input or contradicts the file; a rank is unknown.
    """
    _check_names(inputs, shapes)
    symbols = _symbols(inputs, shapes)
    found: dict[str, tuple[Dim, ...]] = {}
    for entry in inputs:
        given = shapes.get(entry.name)
        dims = _resolve(entry, symbols) if given is None else tuple(int(n) for n in given)
        if dims is None:
            raise _unbound(inputs, shapes, symbols)
        found[entry.name] = dims
    return found


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
