"""A session for a model without fixed shapes: a compiled program for each shape it has met."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ...dialects.errors import UserError
from ...dialects.program import Program
from ...dialects.types import Array, to_numpy
from ...lowering.onnx_to_graph.default_inputs import overridable
from ...lowering.onnx_to_graph.dynamic_program import DynamicProgram
from ...lowering.onnx_to_graph.shape_binding import declared_dims
from ...lowering.onnx_to_graph.tensor_data import element_of_number
from .session import Session, ValueInfo, check_inputs

# So many compiled programs are kept, the last used: each holds its own packed weights.
KEPT = 8


@runtime_checkable
class BoundByShapes(Protocol):
    """A program without fixed shapes that is no ONNX model: one of torch.export."""

    def value_infos(self) -> tuple[tuple[ValueInfo, ...], tuple[ValueInfo, ...]]:
        """Inputs and outputs."""
        ...

    def key(self, arrays: Mapping[str, Array]) -> Hashable:
        """What `bind` depends on."""
        ...

    def bind(self, arrays: Mapping[str, Array]) -> Program:
        """The program for these arrays."""
        ...


class DynamicSession(Session):
    """Runs one model on arrays of any shape that it declares.

    The first call with new shapes imports and compiles the model for them; later calls with the
    same shapes compile nothing. The last `KEPT` programs are kept.

    Example:
        session = isoform.compile(isoform.load("dynamic.onnx"))
        session(x=np.zeros((2, 8), np.float32))
        session(x=np.zeros((3, 8), np.float32))
    """

    def __init__(self, program: Program, compile_one: Callable[[Program], Session]) -> None:
        if isinstance(program, DynamicProgram):
            self.inputs, self.outputs = _inputs(program), _outputs(program)
        else:
            assert isinstance(program, BoundByShapes)
            self.inputs, self.outputs = program.value_infos()
        self.dynamic: DynamicProgram | BoundByShapes = program
        self._defaults = {}  # each program has its own
        self._compile = compile_one
        self._sessions: OrderedDict[Hashable, Session] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def programs(self) -> int:
        """How many compiled programs are held now."""
        return len(self._sessions)

    @property
    def algorithms(self) -> list[dict[str, Any]]:
        """As `Session.algorithms`, of the program used last."""
        with self._lock:
            last = next(reversed(self._sessions.values()), None)
        return [] if last is None else last.algorithms

    def close(self) -> None:
        """Close all programs' sessions; a closed session cannot run."""
        with self._lock:
            self._closed = True
            for session in self._sessions.values():
                session.close()
            self._sessions.clear()

    def _run(
        self, feeds: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        session, arrays = self.bound(check_inputs(self.inputs, feeds))
        found = session.run(None, arrays, out)
        return dict(zip([o.name for o in session.outputs], found, strict=True))

    def bound(self, feeds: Mapping[str, Array]) -> tuple[Session, Mapping[str, Array]]:
        """The session of the program for these arrays, and those of them that it takes.

        Inputs that decide sizes are constants of that program.

        Raises:
            UserError: as `DynamicProgram.bind`.
        """
        session = self._session(feeds)
        taken = {info.name for info in session.inputs}
        return session, {name: array for name, array in feeds.items() if name in taken}

    def _session(self, arrays: Mapping[str, Array]) -> Session:
        with self._lock:
            if self._closed:
                raise UserError("this session is closed")
            found = self._sessions.get(self.dynamic.key(arrays))
            if found is None:
                found = self._compile(self.dynamic.bind(arrays))
            # The key is asked for again: an import may have found inputs that decide sizes.
            key = self.dynamic.key(arrays)
            self._sessions[key] = found
            self._sessions.move_to_end(key)
            # Not closed: another thread may be running it. It ends with its last user.
            while len(self._sessions) > KEPT:
                self._sessions.popitem(last=False)
            return found


def _inputs(program: DynamicProgram) -> tuple[ValueInfo, ...]:
    found = [
        ValueInfo(entry.name, _dtype(entry.number, entry.name), entry.dims)
        for entry in program.declared
    ]
    for name, proto in overridable(program.model).items():
        found.append(ValueInfo(name, _dtype(proto.data_type, name), tuple(proto.dims), True))
    return tuple(found)


def _outputs(program: DynamicProgram) -> tuple[ValueInfo, ...]:
    """What the model declares; an output without a type, as ONNX allows, has dtype void."""
    found: list[ValueInfo] = []
    for info in program.model.proto.graph.output:
        number = info.type.tensor_type.elem_type
        dtype = _dtype(number, info.name) if number else np.dtype("V")
        found.append(ValueInfo(info.name, dtype, declared_dims(info)))
    return tuple(found)


def _dtype(number: int, name: str) -> np.dtype[Any]:
    return to_numpy(element_of_number(number, f"'{name}'"))
