"""IR with symbolic dims as a program that has a module for each shape of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from ...dialects.errors import UnboundDims, UserError, did_you_mean
from ...dialects.program import Program
from ...dialects.shape_guards import shape_env, symbols_of
from ...dialects.specialize import sizes_of_shapes, specialize
from ...dialects.types import Array, shape_of
from ..targets.value_info import ValueInfo

if TYPE_CHECKING:
    from ...dialects.extents import Dims

Step = Callable[[Program], Program]
Shapes = Mapping[str, Sequence[int]]


class SymbolicProgram(Program):
    """A program whose dims have names; `bind` gives them the numbers of some arrays' shapes.

    Whatever needs the module of fixed shapes raises an error that names the flags.

    Args:
        symbolic: the program as read.
        steps: what is done with each program bound, in order.
    """

    is_dynamic = True

    def __init__(self, symbolic: Program, steps: tuple[Step, ...] = ()) -> None:
        self.symbolic = symbolic
        self.steps = steps
        self.weights = symbolic.weights
        self.source = symbolic.source

    def __getattr__(self, name: str) -> NoReturn:
        if name == "module":
            flags = " ".join(f"--shape {s}=NUMBER" for s in symbols_of(self.symbolic.main))
            raise UnboundDims("it has symbolic dims", where=self.source, hint=f"add {flags}")
        raise AttributeError(f"'SymbolicProgram' has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"SymbolicProgram({self.source}: {', '.join(map(str, self.value_infos()[0]))})"

    @property
    def input_names(self) -> list[str]:
        return self.symbolic.input_names

    @property
    def output_names(self) -> list[str]:
        return self.symbolic.output_names

    def then(self, step: Step) -> SymbolicProgram:
        """The same, with one more step done with each program that `bind` makes."""
        return SymbolicProgram(self.symbolic, (*self.steps, step))

    def value_infos(self) -> tuple[tuple[ValueInfo, ...], tuple[ValueInfo, ...]]:
        """Inputs and outputs; symbolic dims by their text."""
        defaults = self.symbolic.defaults
        with shape_env(self.symbolic.main).active():
            inputs = [ValueInfo.of(n, t, n in defaults) for n, t in self.symbolic.inputs.items()]
            outputs = [ValueInfo.of(n, t) for n, t in self.symbolic.outputs.items()]
        return tuple(inputs), tuple(outputs)

    def key(self, arrays: Mapping[str, Array]) -> Hashable:
        """What `bind` depends on: the arrays' shapes."""
        return tuple((name, arrays[name].shape) for name in sorted(arrays))

    def bind(self, arrays: Mapping[str, Array]) -> Program:
        """The program for arrays of these shapes.

        Raises:
            UserError: the shapes contradict the types or the guards.
        """
        return self.at({name: array.shape for name, array in arrays.items()})

    def at(self, shapes: Shapes) -> Program:
        """The program for shapes of inputs by name; a symbol's name has its number alone.

        Raises:
            UserError: as `bind`; a symbol has no number, a name is neither.
        """
        main, names = self.symbolic.main, self.symbolic.input_names
        symbols = symbols_of(main)
        for name, dims in shapes.items():
            if name not in names and name not in symbols:
                hint = did_you_mean(name, [*names, *symbols])
                raise UserError(f"there is no input or dim '{name}'", where="--shape", hint=hint)
            if name not in names and len(dims) != 1:
                raise UserError(f"dim '{name}' takes one number", where="--shape", found=dims)
        sizes = {name: int(dims[0]) for name, dims in shapes.items() if name not in names}
        given = {name: dims for name, dims in shapes.items() if name in names}
        found = sizes_of_shapes(main, names, given)
        for name, n in found.items():
            if sizes.setdefault(name, n) != n:
                raise UserError(f"dim '{name}' has two sizes", expected=sizes[name], found=n)
        program = self.symbolic.clone()
        program.weights = program.weights.apart()
        specialize(program.module, sizes, program.weights)
        return self.finished(program)

    def symbolic_dims(self) -> dict[str, Dims]:
        """The dims of each input."""
        main = self.symbolic.main
        args = zip(self.symbolic.input_names, main.body.block.args, strict=True)
        with shape_env(main).active():
            return {name: shape_of(arg) for name, arg in args}

    def with_symbols(self, examples: Shapes) -> Program | None:
        """The program as read: it is for all shapes."""
        return self.symbolic

    def finished(self, program: Program) -> Program:
        """A program made of it, after the steps."""
        for step in self.steps:
            program = step(program)
        return program


def with_shapes(program: Program, shapes: Shapes) -> Program:
    """A program with symbolic dims as a `SymbolicProgram`, or what `shapes` make of it.

    Raises:
        UserError: as `SymbolicProgram.at`.
    """
    found = SymbolicProgram(program)
    return found.at(shapes) if shapes else found
