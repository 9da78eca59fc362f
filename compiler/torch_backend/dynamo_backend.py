"""The backend `isoform` of torch.compile.

dynamo gives a graph of torch calls, AOT makes it functional and of ATen ops. The rest happens at
the first call, when shapes and parameters are known: the graph is partitioned, each part compiled
with the parameters as constants. Later calls use what was compiled for the same shapes and
parameters.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from ...dialects.errors import UserError, one_line, say
from .decompositions import decompositions
from .options import BackendOptions
from .partition import LOG, Partition
from .symbols import SizesOf, Symbols

# Programs kept for one graph: one for each combination of shapes, parameters and threads.
MOST_PROGRAMS = 32
# Programs with symbols for one graph: each is for the sizes that its guards allow.
MOST_SYMBOLIC = 4
# Sizes of which it is remembered whether they are allowed.
MOST_SIZES = 4096


def isoform(
    module: Any,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a graph of dynamo's: `torch.compile(model, backend="isoform")`.

    Args:
        options: docs/pytorch.md lists them.

    Raises:
        UserError: an unknown option.
    """
    chosen = BackendOptions.of(options)
    why = _why_not(inputs)
    if why:
        LOG.warning("torch runs the whole graph: %s", why)
        return module.forward
    return aot_autograd(
        fw_compiler=lambda gm, _: _boxed(CompiledGraph(gm, chosen)),
        decompositions=decompositions(),
    )(module, inputs)


def _why_not(inputs: Sequence[Any]) -> str:
    """Why a graph is left to torch; empty if it is not."""
    tensors = [t for t in inputs if isinstance(t, torch.Tensor)]
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return "gradients are wanted (torch.no_grad() or torch.inference_mode() turns them off)"
    if any(t.device.type != "cpu" for t in tensors):
        return "tensors are not on the cpu"
    return ""


def _boxed(graph: CompiledGraph) -> Callable[[list[Any]], Any]:
    """The calling convention of AOT: one list of arguments, which it may empty."""

    def call(args: list[Any]) -> Any:
        given = tuple(args)
        args.clear()
        return graph(*given)

    call._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return call


class CompiledGraph:
    """One functional ATen graph, with what was compiled for the shapes and parameters seen."""

    def __init__(self, module: Any, options: BackendOptions) -> None:
        self.module = module
        self.options = options
        self.names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
        values = [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]
        self.varying = [k for k, v in enumerate(values) if _is_symbolic(v)]
        self.changing: set[int] = set()  # arguments that were thought constant
        self.entries: dict[Any, list[_Entry]] = {}
        self.count = 0
        placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        self.sizes = SizesOf(placeholders) if self.varying else None

    def __call__(self, *args: Any) -> Any:
        found = self.entry(args)
        if found is not None and found.symbols is not None:
            try:
                return found.partition.module.forward(*args)
            except UserError as error:  # a size that does not compile
                self._take_numbers(error)
                found = self.entry(args)
        return (self.module if found is None else found.partition.module).forward(*args)

    def entry(self, args: Sequence[Any]) -> _Entry | None:
        """What is compiled for these arguments; None where too much is compiled already."""
        shapes = () if self.sizes is not None else (_shape(args[k]) for k in self.varying)
        key = (torch.get_num_threads(), self.sizes is not None, *shapes)
        known = self.entries.setdefault(key, [])
        for entry in known:
            if entry.fits(args):
                return entry
        for entry in list(known):
            changed = entry.changed(args)
            if changed:
                self.changing |= changed
                known.remove(entry)
                self.count -= 1
        if self.count >= MOST_PROGRAMS:
            if self.count == MOST_PROGRAMS:
                self.count += 1
                LOG.warning("torch runs more shapes or parameters than %d", MOST_PROGRAMS)
            return None
        if self.sizes is not None and len(known) >= MOST_SYMBOLIC:
            self._take_numbers("guards of a graph with symbols allow few sizes")
            return self.entry(args)
        try:
            made = self._compiled(args)
        except UserError as error:
            if self.sizes is None:
                raise
            self._take_numbers(error)
            return self.entry(args)
        known.append(made)
        self.count += 1
        return made

    def _take_numbers(self, why: UserError | str) -> None:
        """Compile each shape by itself from now on."""
        say(f"each shape of a torch graph is compiled by itself ({one_line(str(why))})")
        self.sizes = None

    def _compiled(self, args: Sequence[Any]) -> _Entry:
        constants = {k: a for k, a in enumerate(args) if k not in self.changing and _is_constant(a)}
        named = {self.names[k]: tensor for k, tensor in constants.items()}
        # The parts compile by themselves; nothing of it belongs to the caller's graph.
        with torch.no_grad():
            if self.sizes is not None:
                symbols = Symbols(self.sizes(args), {})
                with symbols.env.active():
                    partition = Partition(self.module, named, self.options, symbols)
                return _Entry(partition, constants, symbols, self.sizes)
            module = self._with_shapes(args) if self.varying else self.module
            return _Entry(Partition(module, named, self.options), constants)

    def _with_shapes(self, args: Sequence[Any]) -> Any:
        """A copy of the graph with the types that it has for these arguments."""
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(self.module.graph, {}))
        module = torch.fx.GraphModule(self.module, graph)
        FakeTensorProp(module, FakeTensorMode(allow_non_fake_inputs=True)).propagate(*args)
        return module


class _Entry:
    """A compiled graph and the constants that it was compiled with."""

    def __init__(
        self,
        partition: Partition,
        constants: Mapping[int, Any],
        symbols: Symbols | None = None,
        sizes: SizesOf | None = None,
    ) -> None:
        self.partition, self.symbols, self.sizes = partition, symbols, sizes
        self.allowed: dict[Any, bool] = {}  # by sizes met: whether the guards hold
        self.constants = [(k, t, t._version, t.data_ptr()) for k, t in constants.items()]

    def fits(self, args: Sequence[Any]) -> bool:
        """Whether the constants are these arguments, unchanged, and the guards hold."""
        return self._allows(args) and all(
            args[k] is t and t._version == version and t.data_ptr() == address
            for k, t, version, address in self.constants
        )

    def _allows(self, args: Sequence[Any]) -> bool:
        if self.symbols is None or self.sizes is None:
            return True
        sizes = self.sizes(args)
        key = tuple(sizes.values())
        if key not in self.allowed:
            if len(self.allowed) > MOST_SIZES:
                self.allowed.clear()
            self.allowed[key] = self.symbols.env.broken(sizes) is None
        return self.allowed[key]

    def changed(self, args: Sequence[Any]) -> set[int]:
        """The constants that are these arguments, with other values."""
        return {
            k
            for k, t, version, address in self.constants
            if args[k] is t and (t._version != version or t.data_ptr() != address)
        }


def _is_constant(value: Any) -> bool:
    """Whether an argument is a module's parameter or buffer, of which changes are seen."""
    if not isinstance(value, torch.Tensor) or value.is_inference():
        return False
    kind = getattr(value, "_dynamo_static_input_type", None)
    return isinstance(value, torch.nn.Parameter) or kind is not None


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(not isinstance(n, int) for n in (*value.shape, *value.stride()))
    return not isinstance(value, (int, float, bool))


def _shape(value: Any) -> Any:
    return (*value.shape, *value.stride()) if isinstance(value, torch.Tensor) else value
