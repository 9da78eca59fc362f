"""A model that has a program for each shape of its inputs.

Nothing in it is symbolic: it is imported for the shapes that come, and again for others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from html import escape
from typing import NoReturn

from ...dialects.dims import shown
from ...dialects.errors import UserError, warn
from ...dialects.program import Program
from ...dialects.types import Array, to_numpy
from ...dialects.weights import Weights
from .default_inputs import deciding_inputs, tell
from .importer import imported
from .loading import OnnxModel
from .shape_binding import DeclaredInput, UnboundDims, bind, declared_inputs, without_lengths
from .tensor_data import element_of_number, type_name
from .values import NotConstant

# Found while binding, an input of more elements is not read as sizes: each new value is an import.
MOST_SIZES = 4096

Step = Callable[[Program], Program]
Shapes = Mapping[str, Sequence[int]]


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
                program, fixed = imported(self.model, self._shapes(arrays), values)
            except NotConstant as error:
                found = deciding_inputs(self.model, error.value) - self._sizes
                if not found or any(arrays[n].size > MOST_SIZES for n in found if n in arrays):
                    raise
                self._sizes |= found
                continue
            self._tell(program, fixed)
            for step in self.steps:
                program = step(program)
            return program

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
        if not deciding_inputs(model, error.value):
            raise
        return DynamicProgram(model, error, shapes)
    tell(model, program.defaults, fixed)
    return program


def _dtype_name(number: int) -> str:
    """A dtype as numpy calls it, or ONNX where there is none."""
    try:
        return str(to_numpy(element_of_number(number, "")))
    except UserError:
        return type_name(number)
