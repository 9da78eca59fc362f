"""A model that has a program for each shape of its inputs.

It is imported with symbols for dims (dialects/extents.py), and the symbols are bound for the shapes
that come. A shape that breaks the program's guards is another import; so is each shape of a model
with a node whose import needs numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from ...dialects.dims import shown
from ...dialects.errors import UnboundDims, UserError, in_debug_mode, one_line, say, warn
from ...dialects.program import Program
from ...dialects.shape_guards import shape_env
from ...dialects.specialize import sizes_of_dims, specialize
from ...dialects.types import Array, shape_of, to_numpy
from ...dialects.weights import Weights
from .default_inputs import deciding_inputs, tell
from .importer import imported
from .loading import OnnxModel
from .shape_binding import DeclaredInput, bind, declared_inputs, without_lengths
from .tensor_data import element_of_number, type_name
from .values import NeedsNumbers, NotConstant

if TYPE_CHECKING:
    from ...dialects.extents import Dims, ShapeEnv

# An input whose values decide sizes is imported anew for each value. One with more elements than
# this is not read for its values.
MOST_SIZES = 4096

# A model has at most this many imports with symbols. Where the guards of each allow one size only,
# there would be one for each size.
MOST_SYMBOLIC = 4

Step = Callable[[Program], Program]
Shapes = Mapping[str, Sequence[int]]
Imported: TypeAlias = "tuple[Program, Collection[str]]"


@dataclass
class _Symbolic:
    """An import with symbols.

    Attributes:
        fixed: the initialisers that it took for constants.
        values: the bytes of the inputs that it took for constants.
    """

    program: Program
    fixed: Collection[str]
    values: Mapping[str, bytes]

    def sizes(self, shapes: Shapes) -> dict[str, int]:
        """The symbols' numbers. Raises UserError where the shapes contradict the types."""
        return sizes_of_dims(self.dims, shapes)

    @cached_property
    def dims(self) -> Mapping[str, Dims]:
        """The dims of each input."""
        args = zip(self.program.input_names, self.program.main.body.block.args, strict=True)
        return {name: shape_of(arg) for name, arg in args}

    @cached_property
    def guards(self) -> ShapeEnv:
        """The guards, and what is known of the symbols."""
        return shape_env(self.program.main)

    def fits(self, shapes: Shapes) -> bool:
        """Whether the shapes satisfy the program's guards."""
        try:
            return self.guards.broken(self.sizes(shapes)) is None
        except UserError:
            return False


class DynamicProgram(Program):
    """An ONNX model whose shapes depend on the arrays given; `bind` makes the program for some.

    Whatever needs the program itself (its module, the types of its values) raises `error`.

    Args:
        model: the parsed model.
        error: why it has no program yet; it names what to give.
        shapes: what is fixed beforehand: shapes of inputs, numbers of symbolic dims.
        steps: what is done with each program made, in order.
    """

    is_dynamic = True

    def __init__(
        self, model: OnnxModel, error: UserError, shapes: Shapes, steps: tuple[Step, ...] = ()
    ) -> None:
        self.model = model
        self.error = error
        self.shapes = shapes
        self.steps = steps
        self.weights = Weights()
        self.source = model.source
        self.declared: tuple[DeclaredInput, ...] = tuple(declared_inputs(model.proto.graph, shapes))
        # Inputs read as sizes: the program depends on their values. Imports find them.
        self._sizes: set[str] = set()
        self._told = False
        self._symbolic: list[_Symbolic] = []
        self._needs_numbers = False
        if isinstance(error, NotConstant):
            self._sizes |= deciding_inputs(model, error.value)

    def __getattr__(self, name: str) -> NoReturn:
        if name == "module":
            raise self.error.with_traceback(None)
        raise AttributeError(f"'DynamicProgram' has no attribute '{name}'")

    def __repr__(self) -> str:
        lines = [f"DynamicProgram {self.source}".rstrip()]
        for info in self.declared:
            lines.append(f"  {info.name}: {_dtype_name(info.number)}{shown(info.dims)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    @property
    def symbolic(self) -> list[Program]:
        """The programs with symbols that were imported: each is for the shapes of its guards."""
        return [entry.program for entry in self._symbolic]

    def then(self, step: Step) -> DynamicProgram:
        """The same, with one more step done with each program that `bind` makes."""
        return DynamicProgram(self.model, self.error, self.shapes, (*self.steps, step))

    def key(self, arrays: Mapping[str, Array]) -> Hashable:
        """What `bind` depends on: the arrays' shapes, and the values of those read as sizes."""
        shapes = tuple((name, arrays[name].shape) for name in sorted(arrays))
        values = tuple((name, arrays[name].tobytes()) for name in sorted(self._sizes))
        return shapes, values

    def bind(self, arrays: Mapping[str, Array]) -> Program:
        """The program for arrays of these shapes; inputs that decide sizes become constants.

        Args:
            arrays: by input name; all that are dynamic, with the dtypes that the model declares.

        Raises:
            UserError: the shapes contradict each other, or sizes depend on other data than inputs
                of integers; also what an import raises.
        """
        while True:
            values = {name: arrays[name] for name in sorted(self._sizes)}
            try:
                program, fixed = self._bound(self._shapes(arrays), values)
            except NotConstant as error:
                found = deciding_inputs(self.model, error.value) - self._sizes
                if not found or any(arrays[n].size > MOST_SIZES for n in found if n in arrays):
                    raise
                self._sizes |= found
                continue
            self._tell(program, fixed)
            return self.finished(program)

    def symbolic_dims(self) -> dict[str, Dims]:
        """The dims of each input, with symbols for those that are not fixed."""
        from ...dialects.extents import ShapeEnv
        from .symbolic_inputs import symbolic_shapes

        return symbolic_shapes(self.declared, self.shapes, {}, ShapeEnv())

    def with_symbols(self, examples: Shapes) -> Program | None:
        """The program with symbols for these shapes of inputs and others; None if there is none."""
        if self._sizes:  # values of inputs decide, too
            return None
        found = self._symbolic_for(examples, {})
        return None if found is None else found.program

    def finished(self, program: Program) -> Program:
        """A program made of one with symbols, after the steps."""
        for step in self.steps:
            program = step(program)
        return program

    def _bound(self, shapes: Shapes, values: Mapping[str, Array]) -> Imported:
        """The program for shapes of all inputs, from one with symbols where there is one."""
        found = self._symbolic_for(shapes, values)
        if found is None:
            return imported(self.model, shapes, values)
        bound = found.program.clone()
        bound.weights = bound.weights.apart()  # what is made for these shapes goes with them
        specialize(bound.module, found.sizes(shapes), bound.weights)
        return bound, found.fixed

    def _symbolic_for(self, shapes: Shapes, values: Mapping[str, Array]) -> _Symbolic | None:
        """A program with symbols whose guards hold, imported now if there is none yet.

        None after `MOST_SYMBOLIC` of them, or where an import failed: with symbols it takes several
        times as long, for a program that is then for one shape.
        """
        same = {name: array.tobytes() for name, array in values.items()}
        for entry in self._symbolic:
            if entry.values == same and entry.fits(shapes):
                return entry
        if self._needs_numbers or len(self._symbolic) >= MOST_SYMBOLIC:
            return None
        given = {e.name: shapes[e.name] for e in self.declared if e.name in shapes}
        try:
            program, fixed = imported(self.model, self.shapes, values, given)
        except NotConstant:
            raise
        except Exception as error:  # code that takes numbers alone: it is imported for these
            if in_debug_mode() and not isinstance(error, NeedsNumbers):
                raise
            say(f"{self.source}: imported for each shape anew ({one_line(str(error))})")
            self._needs_numbers = True
            return None
        found = _Symbolic(program, fixed, same)
        self._symbolic.append(found)
        return found

    def _shapes(self, arrays: Mapping[str, Array]) -> Shapes:
        """The shapes given beforehand and those of the arrays for dynamic inputs.

        Raises:
            UserError: they contradict each other.
        """
        found = {e.name: arrays[e.name].shape for e in self.declared if not e.is_static}
        for name, shape in self.shapes.items():
            if name in found and tuple(shape) != found[name]:
                raise UserError(
                    f"input '{name}' has another shape than it was loaded with",
                    expected=list(shape),
                    found=list(found[name]),
                )
        shapes = {**self.shapes, **found}
        try:
            bind(self.declared, without_lengths(self.model.proto.graph, shapes))
        except UserError as error:
            error.where = "the inputs' shapes"  # no flag gave them
            raise
        return shapes

    def _tell(self, program: Program, fixed: Collection[str]) -> None:
        """Warn once of what each new value of an input costs."""
        if self._told:
            return
        self._told = True
        tell(self.model, program.defaults, fixed)
        if self._sizes:
            names = ", ".join(f"'{name}'" for name in sorted(self._sizes))
            warn(f"shapes depend on {names}: each new value is compiled anew", self.source)


def load_dynamic(model: OnnxModel, shapes: Shapes) -> Program:
    """The model's program, or where shapes depend on what is given a `DynamicProgram`.

    Raises:
        UserError: as `import_onnx`; sizes depend on data that are no input of integers.
    """
    try:
        program, fixed = imported(model, shapes)
    except UnboundDims as error:
        return DynamicProgram(model, error, shapes)
    except NotConstant as error:
        deciding = deciding_inputs(model, error.value)
        if not deciding:
            raise
        names = ", ".join(f"'{name}'" for name in sorted(deciding))
        error.hint = error.hint or f"a session, and run --inputs, take any value of {names}"
        return DynamicProgram(model, error, shapes)
    tell(model, program.defaults, fixed)
    return program


def _dtype_name(number: int) -> str:
    """A dtype as numpy calls it, or ONNX where there is none."""
    try:
        return str(to_numpy(element_of_number(number, "")))
    except UserError:
        return type_name(number)
