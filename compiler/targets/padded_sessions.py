"""Programs of the largest sizes for the shapes that come: which serves which."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Protocol, TypeVar, runtime_checkable

from ...dialects.errors import UserError, one_line, say
from ...dialects.extents import Dims, at_sizes, names_in
from ...dialects.program import Program
from ...dialects.specialize import check_names
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

    def symbolic_dims(self) -> Mapping[str, Dims]:
        """The dims of each input, with the symbols' names."""
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
        up_to: bounds of symbols that the user gave; sizes beyond get bounds as without.

    Attributes:
        sessions: by the program with symbols, its fixed sizes and its bounds.
    """

    def __init__(
        self,
        program: Program,
        compile_one: Callable[[Program], Session],
        grow: bool = False,
        up_to: Sizes | None = None,
    ) -> None:
        self.sessions: OrderedDict[Hashable, PaddedSession] = OrderedDict()
        self._program = program if isinstance(program, HasSymbols) else None
        self._compile, self._grow, self._up_to = compile_one, grow, dict(up_to or {})
        # The sizes that each symbol has had: one that had two changes from call to call.
        self._met: dict[str, set[int]] = {}
        self._routes: OrderedDict[Hashable, Route | None] = OrderedDict()
        self._made: OrderedDict[Hashable, Route] = OrderedDict()
        self._bounding: dict[int, SizeBounds] = {}
        # Of each shape, the work done for padding so far and that of a call.
        self._waste: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def prepare(self) -> list[Shapes]:
        """Compile the program for the bounds that the user gave.

        Returns:
            The inputs' shapes where some symbols are 1 and others their bound: a node that may
            broadcast has other guards there, so other programs may serve them.

        Raises:
            UserError: a symbol has no bound, or no program serves all sizes up to them.
        """
        dims = {} if self._program is None else self._program.symbolic_dims()
        check_names(names_in(dims.values()), self._up_to)
        for name, n in self._up_to.items():
            if type(n) is not int or n < 1:
                raise UserError(f"up_to['{name}']", expected="a number of 1 or more", found=repr(n))
        problem = "its shapes depend on data, or its guards do not hold at these sizes"
        route = self._route({name: at_sizes(d, self._up_to) for name, d in dims.items()})
        try:
            if route is not None:
                self._session(route)
            if route is not None or set(self._up_to.values()) == {1}:
                corners = product(*(dict.fromkeys((n, 1)) for n in self._up_to.values()))
                sizes = [dict(zip(self._up_to, corner, strict=True)) for corner in corners]
                return [{name: at_sizes(d, at) for name, d in dims.items()} for at in sizes]
        except NotBounded as error:
            problem = one_line(str(error))
        hint = "leave up_to out: each size is then compiled when it comes"
        raise UserError("no one program serves all sizes", found=problem, hint=hint)

    def session_for(self, arrays: Mapping[str, Array]) -> PaddedSession | None:
        """The session of a bounded program; None if these shapes get a program of their own."""
        shapes = {name: array.shape for name, array in arrays.items()}
        key = tuple(shapes.items())
        if key not in self._routes:
            keep(self._routes, key, self._route(shapes), _REMEMBERED)
        route = self._routes[key]
        if route is None or self._program is None or self._is_hot(key, route, shapes):
            return None
        try:
            return self._session(route)
        except NotBounded as error:
            say(f"each size is compiled by itself ({one_line(str(error))})")
            self._program = None
            return None

    def _session(self, route: Route) -> PaddedSession:
        """The session of a route's program, compiled if it is new. Raises NotBounded."""
        found = self.sessions.get(route.key)
        if found is None:
            assert self._program is not None
            session = self._compile(self._program.finished(route.program()))
            found = PaddedSession(session, route.symbolic, route.bounds, route.fixed)
        keep(self.sessions, route.key, found)
        keep(self._made, route.key, route)
        return found

    def _is_hot(self, key: Hashable, route: Route, shapes: Shapes) -> bool:
        """Whether padding has cost these shapes what a program of their own does.

        By modelled work: equal calls have equal programs.
        """
        # A cache that is copied to a program of its own size costs more.
        if route.grow or self._is_within(route.bounds):
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

    def _is_within(self, sizes: Sizes) -> bool:
        """Whether the user gave bounds, and they hold these sizes."""
        return bool(self._up_to) and all(n <= self._up_to.get(s, n) for s, n in sizes.items())

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
        if not bounding.guards_hold(sizes):
            return None
        asked = bounding.up_to(self._up_to, sizes) if self._is_within(sizes) else {}
        if asked:
            fixed = {name: n for name, n in sizes.items() if name not in asked}
            return Route(symbolic, fixed, asked, self._grow)
        changing = [name for name in sizes if len(self._met[name]) > 1]
        if not changing:
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
