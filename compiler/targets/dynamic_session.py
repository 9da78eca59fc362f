"""A session for a model without fixed shapes: a compiled program for each shape it has met."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ...dialects.errors import UserError
from ...dialects.program import Program
from ...dialects.types import Array, to_numpy
from ...lowering.onnx_to_graph.default_inputs import overridable
from ...lowering.onnx_to_graph.dynamic_program import DynamicProgram
from ...lowering.onnx_to_graph.shape_binding import declared_dims
from ...lowering.onnx_to_graph.tensor_data import element_of_number
from .padded_sessions import PaddedSessions, keep
from .session import Session, ValueInfo, check_inputs


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

    The first call imports and compiles the model for its shapes. Once a symbol has had two sizes, a
    program is compiled that serves many of them (`bound-dims`; bounds.py says how many): then a new
    size compiles nothing. Where an op has no rule for padding, each new size is compiled. The last
    `KEPT` programs are kept.

    Example:
        session = isoform.compile(isoform.load("dynamic.onnx"))
        session(x=np.zeros((2, 8), np.float32))
        session(x=np.zeros((3, 8), np.float32))
    """

    def __init__(
        self,
        program: Program,
        compile_one: Callable[[Program], Session],
        exact_sizes: bool = False,
        caches_in_place: bool = False,
        up_to: Mapping[str, int] | None = None,
    ) -> None:
        """Compile nothing yet, but for bounds.

        Args:
            exact_sizes: compile each new size by itself.
            caches_in_place, up_to: as in `isoform.compile`.

        Raises:
            UserError: no one program serves all sizes up to the bounds.
        """
        if isinstance(program, DynamicProgram):
            self.inputs, self.outputs = _inputs(program), _outputs(program)
        else:
            assert isinstance(program, BoundByShapes)
            self.inputs, self.outputs = program.value_infos()
        self.dynamic: DynamicProgram | BoundByShapes = program
        self._defaults = {}  # each program has its own
        self._compile = compile_one
        self._sessions: OrderedDict[Hashable, Session] = OrderedDict()
        self._padded = (
            None if exact_sizes else PaddedSessions(program, compile_one, caches_in_place, up_to)
        )
        self._lock = threading.Lock()
        self._closed = False
        if self._padded is not None and up_to is not None:
            largest, *others = self._padded.prepare()
            self._prepare(largest)
            for shapes in others:
                with suppress(UserError):  # a model may take no size as small as 1
                    self._prepare(shapes)

    def _prepare(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._session({i.name: np.empty(shapes[i.name], i.dtype) for i in self.inputs})

    @property
    def programs(self) -> int:
        """How many compiled programs are held now."""
        return len(self._sessions) + (0 if self._padded is None else len(self._padded.sessions))

    def _every(self) -> list[Session]:
        padded = () if self._padded is None else self._padded.sessions.values()
        return [*self._sessions.values(), *padded]

    @property
    def algorithms(self) -> list[dict[str, Any]]:
        """As `Session.algorithms`, of the last program."""
        with self._lock:
            every = self._every()
        return every[-1].algorithms if every else []

    def close(self) -> None:
        """Close all programs' sessions; a closed session cannot run."""
        with self._lock:
            self._closed = True
            for session in self._every():
                session.close()
            self._sessions.clear()
            if self._padded is not None:
                self._padded.sessions.clear()

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
            if found is None and self._padded is not None:
                padded = self._padded.session_for(arrays)
                if padded is not None:
                    return padded
            if found is None:
                found = self._compile(self.dynamic.bind(arrays))
            # The key is asked for again: an import may have found inputs that decide sizes.
            keep(self._sessions, self.dynamic.key(arrays), found)
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
