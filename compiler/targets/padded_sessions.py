"""Programs of the largest sizes for the shapes that come: which serves which."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from ...dialects.errors import UserError, one_line, say
from ...dialects.program import Program
from ...dialects.types import Array
from ...passes.bounding.bound_dims import bound
from ...passes.bounding.bounds import SizeBounds
from ...passes.bounding.padding import NotBounded
from ...passes.margins import PAD
from .padded_session import PaddedSession
from .session import Session

# So many compiled programs are kept, the last used: each holds its own packed weights.
KEPT = 8
# Of so many shapes it is remembered which program serves them.
_REMEMBERED = 4096

T = TypeVar("T")
Shapes = Mapping[str, tuple[int, ...]]
Sizes = Mapping[str, int]


@runtime_checkable
class HasSymbols(Protocol):
    """A program without fixed shapes that has forms with symbols."""

    def with_symbols(self, examples: Shapes) -> Program | None:
        """The form for these shapes and others; None if there is none."""
        ...

    def finished(self, program: Program) -> Program:
        """What is compiled, of a program made of such a form."""
        ...


@dataclass(frozen=True)
class Route:
    """A bounded program: of which program with symbols, at which sizes and bounds."""

    symbolic: Program
    fixed: Mapping[str, int]
    bounds: Mapping[str, int]
    grow: bool = False

    @property
    def key(self) -> Hashable:
        return id(self.symbolic), tuple(self.fixed.items()), tuple(self.bounds.items())

    def holds(self, symbolic: Program, fixed: Sizes, sizes: Sizes) -> bool:
        """Whether it is of this program and these fixed sizes, for such sizes of the others."""
        within = all(n <= self.bounds.get(name, 0) for name, n in sizes.items())
        return within and self.symbolic is symbolic and self.fixed == fixed

    def program(self) -> Program:
        """The bounded program. Raises NotBounded."""
        found = self.symbolic.clone()
        found.weights = found.weights.apart()  # what is made for these bounds goes with them
        bound(found.module, self.bounds, self.fixed, found.weights, self.grow)
        return found


class PaddedSessions:
    """Sessions of bounded programs of one model.

    Args:
        grow: put rows behind those of a result in place where it is given to a later call.

    Attributes:
        sessions: by the program with symbols, its fixed sizes and its bounds.
    """

    def __init__(
        self, program: Program, compile_one: Callable[[Program], Session], grow: bool = False
    ) -> None:
        self.sessions: OrderedDict[Hashable, PaddedSession] = OrderedDict()
        self._program = program if isinstance(program, HasSymbols) else None
        self._compile, self._grow = compile_one, grow
        # The sizes that each symbol has had: one that had two changes from call to call.
        self._met: dict[str, set[int]] = {}
        self._routes: OrderedDict[Hashable, Route | None] = OrderedDict()
        self._made: OrderedDict[Hashable, Route] = OrderedDict()
        self._bounding: dict[int, SizeBounds] = {}
        # Of each shape, the work done for padding so far and that of a call.
        self._waste: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def session_for(self, arrays: Mapping[str, Array]) -> PaddedSession | None:
        """The session of a bounded program; None if these shapes get a program of their own."""
        shapes = {name: array.shape for name, array in arrays.items()}
        key = tuple(shapes.items())
        if key not in self._routes:
            keep(self._routes, key, self._route(shapes), _REMEMBERED)
        route = self._routes[key]
        if route is None or self._program is None or self._is_hot(key, route, shapes):
            return None
        found = self.sessions.get(route.key)
        if found is None:
            try:
                program = self._program.finished(route.program())
            except NotBounded as error:
                say(f"each size is compiled by itself ({one_line(str(error))})")
                self._program = None
                return None
            session = self._compile(program)
            found = PaddedSession(session, route.symbolic, route.bounds, route.fixed)
        keep(self.sessions, route.key, found)
        keep(self._made, route.key, route)
        return found

    def _is_hot(self, key: Hashable, route: Route, shapes: Shapes) -> bool:
        """Whether padding has cost these shapes what a program of their own does.

        By modelled work: equal calls have equal programs.
        """
        if route.grow:  # a cache that is copied to a program of its own size costs more
            return False
        if key not in self._waste:
            bounding = self._bounding[id(route.symbolic)]
            waste = bounding.wasted(route.bounds, bounding.sizes(shapes))
            keep(self._waste, key, (0.0, waste), _REMEMBERED)
        spent, waste = self._waste[key]
        if spent > PAD.wasted:
            self._routes[key] = None
            return True
        self._waste[key] = spent + waste, waste
        return False

    def _route(self, shapes: Shapes) -> Route | None:
        if self._program is None:
            return None
        try:
            symbolic = self._program.with_symbols(shapes)
            if symbolic is None:
                return None
            bounding = self._bounding.get(id(symbolic))
            if bounding is None:
                bounding = self._bounding[id(symbolic)] = SizeBounds(symbolic)
            sizes = bounding.sizes(shapes)
        except UserError:  # what binds the shapes says what is wrong with them
            return None
        for name, n in sizes.items():
            self._met.setdefault(name, set()).add(n)
        if 0 in sizes.values():  # a maximum of nothing, a softmax of nothing: no padding is right
            return None
        changing = [name for name in sizes if len(self._met[name]) > 1]
        if not changing or not bounding.guards_hold(sizes):
            return None
        steps = bounding.steps(sizes, changing)
        fixed = {name: n for name, n in sizes.items() if name not in steps}
        if not steps:
            return None
        for route in self._made.values():  # one that was compiled for others serves these, too
            if route.holds(symbolic, fixed, steps) and bounding.near(route.bounds, steps, fixed):
                return route
        found = Route(symbolic, fixed, bounding.bounds(steps, fixed), self._grow)
        # A size that is its own bound has no padding; a cache is held in place even so.
        alone = all(sizes[name] == n for name, n in found.bounds.items())
        return None if alone and not found.grow else found


def keep(held: OrderedDict[Hashable, T], key: Hashable, value: T, most: int | None = None) -> None:
    """Note a value as the last used; forget what was not used for longest.

    A session is not closed: another thread may be running it. It ends with its last user.
    """
    held[key] = value
    held.move_to_end(key)
    while len(held) > (KEPT if most is None else most):
        held.popitem(last=False)


__all__ = ["KEPT", "PaddedSessions", "Route", "keep"]
