"""A loaded program with symbolic dims as a family: a program for each choice of their sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ...dialects.errors import UserError, one_line
from ...dialects.extent_math import Sizes
from ...dialects.extents import Dims, at_sizes, names_in
from ...dialects.program import Program
from ...dialects.specialize import check_names, specialize
from ...lowering.onnx_to_graph.dynamic_program import DynamicProgram
from ...passes.equivalence.all_sizes import ProgramFamily
from .symbolic_program import SymbolicProgram

# Sizes at which an ONNX model is imported with symbols: the first that work, large enough for each
# dim to be told apart from the others, then large enough for images.
_EXAMPLES = ((11, 13, 17, 19, 23, 29, 31, 37), (67, 71, 73, 79, 83, 89, 97, 101))


def family_of(program: Program) -> ProgramFamily:
    """The family that a program with symbolic dims is.

    Raises:
        UserError: it has none, or they are not known before its inputs are.
    """
    if isinstance(program, SymbolicProgram):
        return ProgramFamily(program.symbolic, partial(_bound, program.symbolic))
    if isinstance(program, DynamicProgram):
        return _of_onnx(program)
    raise UserError("it has no symbolic dims", where=program.source)


def symbolic_at(program: Program, sizes: Sequence[Sizes]) -> Program:
    """The program with symbols that serves these sizes.

    Raises:
        UserError: it has no symbolic dims, one has no size, or one program does not serve them all.
    """
    if isinstance(program, SymbolicProgram):
        return program.symbolic
    if not isinstance(program, DynamicProgram):
        raise UserError("it has no symbolic dims", where=program.source, hint="leave --sizes out")
    dims = program.symbolic_dims()
    for each in sizes:
        check_names(names_in(dims.values()), each)
    return _at(program, dims, sizes[0]).symbolic


def _of_onnx(program: DynamicProgram) -> ProgramFamily:
    dims = program.symbolic_dims()
    names = names_in(dims.values())
    problem = ""
    for examples in _EXAMPLES:
        if len(names) > len(examples):
            raise UserError("too many symbolic dims", where=program.source, found=", ".join(names))
        try:
            return _at(program, dims, dict(zip(names, examples, strict=False)))
        except UserError as error:
            problem = one_line(str(error))
    raise UserError(
        "it has no program with symbols",
        where=program.source,
        found=problem,
        hint="bind its dims: --shape NAME=NUMBER",
    )


def _at(program: DynamicProgram, dims: Mapping[str, Dims], sizes: Sizes) -> ProgramFamily:
    """The family of the import at some sizes; its parts are other imports."""
    own = DynamicProgram(program.model, program.error, program.shapes)
    symbolic = own.with_symbols(_shapes(dims, sizes))
    if symbolic is None:
        raise UserError("a node needs numbers", where=program.source)
    return ProgramFamily(symbolic, partial(_bound, symbolic), partial(_at, program, dims))


def _bound(symbolic: Program, sizes: Sizes) -> Program:
    """The program at sizes, with the same ops at each: positions are weights, however few."""
    program = symbolic.clone()
    program.weights = program.weights.apart()
    specialize(program.module, sizes, program.weights, literal=0)
    return program


def _shapes(dims: Mapping[str, Dims], sizes: Sizes) -> dict[str, tuple[int, ...]]:
    return {name: at_sizes(shape, sizes) for name, shape in dims.items()}
