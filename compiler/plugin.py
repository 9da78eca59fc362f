"""Load a plug-in: one Python file that defines any of the lists in `LISTS`."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar, cast

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

from ..dialects.errors import UserError, one_line

if TYPE_CHECKING:
    from ..lowering.algebra_to_kernel.table import LibraryKernel
    from ..lowering.targets import Target as Machine
    from .search.strategies import Strategy

T = TypeVar("T")

PLUGIN_MODULE = "isoform_plugin_"
LISTS = ("DIALECTS", "PASSES", "TARGETS", "KERNELS", "MACHINES", "STRATEGIES")


@dataclass(frozen=True)
class Plugin:
    """The definitions that a plug-in file adds.

    Attributes:
        targets: what isoform-opt prints for; machines: what programs are optimised for.
    """

    path: str
    dialects: tuple[Dialect, ...]
    passes: tuple[type[ModulePass], ...]
    targets: tuple[type[Target], ...]
    kernels: tuple[LibraryKernel, ...] = ()
    machines: tuple[Machine, ...] = ()
    strategies: tuple[Strategy, ...] = ()


def load_plugin(path: str) -> Plugin:
    """Execute the file at `path` as a module and collect its lists.

    Raises: UserError for a missing file, an error while it runs (with its line), lists of a wrong
    type.
    """
    module = _execute(path)
    if not any(hasattr(module, name) for name in LISTS):
        raise UserError(f"this plug-in defines none of {', '.join(LISTS)}", where=path)
    return Plugin(
        path,
        _instances(module, "DIALECTS", Dialect, path),
        _classes(module, "PASSES", ModulePass, path),
        _classes(module, "TARGETS", Target, path),
        _kernels(module, path),
        _machines(module, path),
        _strategies(module, path),
    )


def _kernels(module: ModuleType, path: str) -> tuple[LibraryKernel, ...]:
    if not hasattr(module, "KERNELS"):
        return ()
    from ..lowering.algebra_to_kernel.table import LibraryKernel

    return _instances(module, "KERNELS", LibraryKernel, path)


def _machines(module: ModuleType, path: str) -> tuple[Machine, ...]:
    if not hasattr(module, "MACHINES"):
        return ()
    from ..lowering.targets import Target as Machine

    return _instances(module, "MACHINES", Machine, path)


def _strategies(module: ModuleType, path: str) -> tuple[Strategy, ...]:
    if not hasattr(module, "STRATEGIES"):
        return ()
    from .search.strategies import Strategy

    return _instances(module, "STRATEGIES", Strategy, path)


@contextmanager
def kernels_of(plugins: Sequence[Plugin]) -> Generator[None]:
    """Register the library kernels, machines and searches of these plug-ins in the block.

    Raises: UserError where a machine's name is taken.
    """
    kernels = [kernel for plugin in plugins for kernel in plugin.kernels]
    machines = [machine for plugin in plugins for machine in plugin.machines]
    strategies = [strategy for plugin in plugins for strategy in plugin.strategies]
    with ExitStack() as stack:
        if strategies:
            from .search.strategies import adding_strategies

            stack.enter_context(adding_strategies(strategies))
        if kernels:
            from ..lowering.algebra_to_kernel.table import adding

            stack.enter_context(adding(kernels))
        if machines:
            from ..lowering.targets import adding_targets

            stack.enter_context(adding_targets(machines))
        yield


_IN_USE: ContextVar[tuple[Plugin, ...]] = ContextVar("plugins", default=())


@contextmanager
def using(paths: Sequence[str]) -> Generator[None]:
    """Add these plug-ins' definitions to every context that is made in the block.

    Raises: UserError as `load_plugin`.
    """
    added = tuple(load_plugin(path) for path in paths)
    token = _IN_USE.set((*_IN_USE.get(), *added))
    try:
        with kernels_of(added):
            yield
    finally:
        _IN_USE.reset(token)


def any_in_use() -> bool:
    """Whether plug-in files are in use."""
    return bool(_IN_USE.get())


def extended(universe: Universe) -> Universe:
    """Return `universe` with the definitions of the plug-ins in use.

    Raises: UserError where a name is taken.
    """
    return reduce(extend, _IN_USE.get(), universe)


def extend(universe: Universe, plugin: Plugin) -> Universe:
    """Return `universe` with the definitions of `plugin`.

    Raises: UserError where a name is taken.
    """
    dialects = {d.name: _giving(d) for d in plugin.dialects}
    passes = {p.name: _giving(p) for p in plugin.passes}
    targets = {t.name: _giving(t) for t in plugin.targets}
    for kind, new, old in (
        ("dialect", dialects, universe.all_dialects),
        ("pass", passes, universe.all_passes),
        ("target", targets, universe.all_targets),
    ):
        for name in new:
            if name in old:
                raise UserError(f"there is already a {kind} '{name}'", where=plugin.path)
    return Universe(
        all_dialects=universe.all_dialects | dialects,
        all_passes=universe.all_passes | passes,
        all_targets=universe.all_targets | targets,
        all_frontends=universe.all_frontends,
    )


def _giving(value: T) -> Callable[[], T]:
    """A factory without parameters: xDSL takes one with any, also with defaults, for a printer."""
    return lambda: value


def _execute(path: str) -> ModuleType:
    """Execute the file under its own module name (dataclasses look their module up by name)."""
    file = Path(path)
    if not file.is_file():
        raise UserError("no such plug-in file", where=path)
    digest = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:8]
    name = f"{PLUGIN_MODULE}{file.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UserError("a plug-in is a Python file, its name ends in .py", where=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UserError(
            f"the plug-in failed to load: {type(error).__name__}: {one_line(str(error))}",
            where=_location(error, path),
        ) from error
    return module


def _location(error: BaseException, path: str) -> str:
    """Return `file:line` of the last line of the plug-in that ran before the error."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename).resolve() == Path(path).resolve()]
    return f"{path}:{lines[-1]}" if lines else path


def _items(module: ModuleType, name: str, path: str) -> Iterable[object]:
    """Return the list called `name`, empty if the plug-in has none."""
    value: object = getattr(module, name, ())
    if not isinstance(value, (list, tuple)):
        raise UserError(f"{name} is not a list", where=path)
    return cast(Iterable[object], value)


def _classes(module: ModuleType, name: str, base: type[T], path: str) -> tuple[type[T], ...]:
    """Return the subclasses of `base` listed under `name`; each must have a name."""
    for item in _items(module, name, path):
        if not (isinstance(item, type) and issubclass(item, base)):
            raise UserError(f"{name} holds {item!r}, not a subclass of {base.__name__}", where=path)
        if not isinstance(getattr(item, "name", None), str):
            raise UserError(f'{item.__name__} has no name = "..."', where=path)
    return cast(tuple[type[T], ...], tuple(_items(module, name, path)))


def _instances(module: ModuleType, name: str, kind: type[T], path: str) -> tuple[T, ...]:
    """Return the objects of type `kind` listed under `name`."""
    items = tuple(_items(module, name, path))
    for item in items:
        if not isinstance(item, kind):
            raise UserError(f"{name} holds {item!r}, not a {kind.__name__}", where=path)
    return cast(tuple[T, ...], items)
