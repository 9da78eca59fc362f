"""A program: a module with one `func.func @main`, and the weights it names.

Inputs and outputs keep their user-visible names in the argument attribute `isoform.name`; SSA names
are only derived from them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    UnknownLoc,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.printer import Printer

from .cuts import cut
from .errors import UserError
from .program_summary import html, summary
from .types import Array, Tensor, tensor_type
from .weights import Weights

NAME = "isoform.name"
# On an input that may be left out: the weight that it then is.
DEFAULT = "isoform.default"
# On an output that is a number of rows: the output that has so many before its padding, the dim.
CUTS = "isoform.cuts"
# On @main of a bounded program: of each result, the symbol that says how many rows of a dim count,
# or "". The input that says how large a symbol is has SIZE before the symbol's name.
ROWS = "isoform.rows"
SIZE = "size."
# On @main of such a program: of each result that is an input and rows behind it, the input's name
# and the dim. Two more inputs have that name behind a prefix: KEPT, how many of its rows the
# result's buffer holds before, and ENDS, from which on it holds what the result has there.
GROWS = "isoform.grows"
KEPT = "kept."
ENDS = "ends."
# On a weight or literal made at compile time: the ops that made it, as text.
EXPRESSION = "isoform.expression"
# On a module made by passes: the passes, in order, as a pipeline.
PIPELINE = "isoform.pipeline"
# On a module with placed buffers: the bytes that these need.
ARENA = "isoform.arena_bytes"


@dataclass(repr=False)
class Program:
    """The object that every command works on. Passes change `module` in place."""

    module: ModuleOp
    weights: Weights = field(default_factory=Weights)
    source: str = ""

    # Whether shapes depend on what is given: then there is no module (a `DynamicProgram`).
    is_dynamic: ClassVar[bool] = False

    @property
    def main(self) -> FuncOp:
        return main_of(self.module)

    @property
    def inputs(self) -> dict[str, Tensor]:
        """Name and type of each input, in order."""
        args = self.main.body.block.args
        return dict(zip(self.input_names, (tensor_type(a) for a in args), strict=True))

    @property
    def input_names(self) -> list[str]:
        return input_names_of(self.main)

    @property
    def defaults(self) -> dict[str, str]:
        """The inputs that may be left out, each with its default weight."""
        return weights_by_default(self.main)

    @property
    def output_names(self) -> list[str]:
        values = return_of(self.module).arguments
        return _names(self.main.res_attrs, len(values), [v.name_hint for v in values], "output")

    @property
    def outputs(self) -> dict[str, Tensor]:
        """Name and type of each output, in order."""
        values = return_of(self.module).arguments
        return dict(zip(self.output_names, (tensor_type(v) for v in values), strict=True))

    def remarks(self) -> list[str]:
        """Lines that a summary ends with."""
        return []

    def __repr__(self) -> str:
        try:
            return summary(self, *self.remarks())
        except UserError as error:
            return f"{type(self).__name__} {self.source}: {error}"

    def _repr_html_(self) -> str:
        return html(self, *self.remarks())

    @property
    def cuts(self) -> dict[str, tuple[str, int]]:
        """Of the outputs that are numbers of rows: whose rows, and along which dim."""
        attributes = self.main.res_attrs
        found: dict[str, tuple[str, int]] = {}
        entries = [] if attributes is None else [entry.data.get(CUTS) for entry in attributes]
        for name, entry in zip(self.output_names, entries, strict=False):
            match entry:
                case ArrayAttr(data=(StringAttr(data=output), IntegerAttr(value=dim))):
                    found[name] = output, dim.data
                case _:
                    pass
        return found

    @property
    def grows(self) -> dict[str, tuple[str, int]]:
        """Of the outputs that are an input and rows behind it: which input, along which dim."""
        found: dict[str, tuple[str, int]] = {}
        entries = self.main.attributes.get(GROWS)
        for name, entry in zip(self.output_names, entries or (), strict=False):  # pyright: ignore
            match entry:
                case ArrayAttr(data=(StringAttr(data=given), IntegerAttr(value=dim))):
                    found[name] = given, dim.data
                case _:
                    pass
        return found

    def cut(self, outputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs without padding: see cuts.py."""
        return cut(outputs, self.cuts)

    def then(self, step: Callable[[Program], Program]) -> Program:
        """The program that `step` makes of this one; a `DynamicProgram` waits until it is bound."""
        return step(self)

    def clone(self) -> Program:
        """A copy whose module can be changed independently; weights are shared."""
        return Program(self.module.clone(), self.weights, self.source)


def main_of(module: ModuleOp) -> FuncOp:
    """The `@main` of a module. Raises UserError if there is none or it is only declared."""
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "main":
            if not op.body.blocks:
                raise UserError("func.func @main has no body")
            return op
    others = [f"@{op.sym_name.data}" for op in module.body.block.ops if isinstance(op, FuncOp)]
    hint = f"it has {', '.join(others[:5])}; @main is what runs" if others else None
    raise UserError("the module has no func.func @main", hint=hint)


def input_names_of(function: FuncOp) -> list[str]:
    """The user-visible names of a function's arguments."""
    args = function.body.block.args
    return _names(function.arg_attrs, len(args), [a.name_hint for a in args], "input")


def weights_by_default(function: FuncOp) -> dict[str, str]:
    """The arguments of a function that may be left out, each with its default weight."""
    attributes = function.arg_attrs
    if attributes is None:
        return {}
    found = zip(input_names_of(function), [e.data.get(DEFAULT) for e in attributes], strict=True)
    return {n: w.root_reference.data for n, w in found if isinstance(w, SymbolRefAttr)}


def return_of(module: ModuleOp) -> ReturnOp:
    """The `func.return` of @main. Raises UserError if it ends otherwise."""
    last = main_of(module).body.block.last_op
    if not isinstance(last, ReturnOp):
        raise UserError("func.func @main does not end with func.return")
    return last


def check_names(program: Program) -> None:
    """Raise UserError if two inputs, or two outputs with different values, share a name."""
    names = program.input_names
    for k, name in enumerate(names):
        if name in names[:k]:
            raise UserError(f"two inputs are named '{name}'")
    values: dict[str, SSAValue] = {}
    for name, value in zip(program.output_names, return_of(program.module).arguments, strict=True):
        if values.setdefault(name, value) is not value:
            raise UserError(f"two outputs that are not one value are named '{name}'")


def _names(
    attributes: ArrayAttr[DictionaryAttr] | None,
    count: int,
    hints: Sequence[str | None],
    default: str,
) -> list[str]:
    names: list[str] = []
    for k in range(count):
        given = attributes.data[k].data.get(NAME) if attributes is not None else None
        if isinstance(given, StringAttr):
            names.append(given.data)
        else:
            hint = hints[k]
            names.append(hint if hint is not None and hint not in names else f"{default}{k}")
    return names


def named(
    names: Sequence[str],
    defaults: Collection[str] = (),
    cuts: Mapping[str, tuple[str, int]] | None = None,
) -> ArrayAttr[DictionaryAttr]:
    """Argument (or result) attributes with the names, defaults of the same names, and cuts."""

    def entry(name: str) -> DictionaryAttr:
        found: dict[str, Attribute] = {NAME: StringAttr(name)}
        if name in defaults:
            found[DEFAULT] = SymbolRefAttr(name)
        if cuts and name in cuts:
            output, dim = cuts[name]
            found[CUTS] = ArrayAttr([StringAttr(output), IntegerAttr(dim, i64)])
        return DictionaryAttr(found)

    return ArrayAttr(entry(name) for name in names)


def keep_names(program: Program) -> None:
    """Record the names of inputs and outputs: passes may change SSA names."""
    main = program.main
    inputs = _with_names(main.arg_attrs, program.input_names)
    outputs = _with_names(main.res_attrs, program.output_names)
    main.arg_attrs, main.res_attrs = inputs, outputs


def _with_names(
    attributes: ArrayAttr[DictionaryAttr] | None, names: Sequence[str]
) -> ArrayAttr[DictionaryAttr]:
    known = [{}] * len(names) if attributes is None else [entry.data for entry in attributes]
    return ArrayAttr(
        DictionaryAttr({**entry, NAME: StringAttr(name)})
        for entry, name in zip(known, names, strict=True)
    )


def sanitise(name: str) -> str:
    """A valid SSA name hint: [A-Za-z0-9_$.-], no leading digit."""
    clean = re.sub(r"[^A-Za-z0-9_$.-]", "_", name)
    return f"v{clean}" if not clean or clean[0].isdigit() or clean[0] in "-.$" else clean


def name_value(value: SSAValue, name: str) -> None:
    """Give a value the SSA name closest to `name`."""
    value.name_hint = sanitise(name)


def printed_names(module: ModuleOp, values: Sequence[SSAValue]) -> dict[SSAValue, str]:
    """The distinct names under which values are printed, without the %.

    A hint shared by several values is numbered (`y`, `y_1`); values without a hint are numbered.
    """
    times: Counter[str | None] = Counter()
    _count_hints(main_of(module).body.block, times)
    hints = {value: value.name_hint or "" for value in values}
    if all(name and times[name] == 1 for name in hints.values()):
        return hints
    printer = Printer(StringIO())
    printer.print_op(module)
    return {value: printer._ssa_values[value] for value in values}  # pyright: ignore[reportPrivateUsage]


def _count_hints(block: Block, times: Counter[str | None]) -> None:
    times.update([value.name_hint for value in block.args])
    for op in block.ops:
        for result in op.results:
            times[result.name_hint] += 1
        # A scope's body is printed as an expression: it has no names.
        for region in op.regions if op.name != "algebra.scope" else ():
            for inner in region.blocks:
                _count_hints(inner, times)


def location(name: str) -> LocationAttr:
    """The location that carries an ONNX node's (or a builder's) name."""
    return NameLoc(StringAttr(name), NoneAttr()) if name else UnknownLoc()


def where(op: Operation) -> str:
    """A name of an op for users: its source name if known, else the op's own."""
    if isinstance(op.location, NameLoc):
        return f"{op.name} '{op.location.desc.data}'"
    hint = op.results[0].name_hint if op.results else None
    return f"{op.name} %{hint}" if hint else op.name


def without_code(op: Operation, code: str) -> UserError:
    """The error where a program is to run and an op has no code of this kind ("CPU", "CUDA")."""
    ours = op.name.startswith(("graph.", "algebra."))
    runs = "what runs is made of graph, algebra and kernel ops"
    hint = "lower to kernel first" if ours else runs
    return UserError(f"this op has no {code} code", where=where(op), hint=hint)


def expression_of(op: Operation) -> str | None:
    """The ops that made a weight or literal at compile time; None for the program's own."""
    text = op.attributes.get(EXPRESSION)
    return text.data if isinstance(text, StringAttr) else None


def pipeline_of(module: ModuleOp) -> str:
    """The passes that made a module, as recorded; empty for none."""
    text = module.attributes.get(PIPELINE)
    return text.data if isinstance(text, StringAttr) else ""


def add_pipeline(module: ModuleOp, passes: str) -> None:
    """Record that these passes, too, made the module."""
    joined = ",".join(text for text in (pipeline_of(module), passes) if text)
    if joined:
        module.attributes[PIPELINE] = StringAttr(joined)


def provenance(op: Operation) -> list[str]:
    """Names of the rules that made this op, in order."""
    rules = op.attributes.get("isoform.rules")
    return (
        [r.data for r in rules.data if isinstance(r, StringAttr)]
        if isinstance(rules, ArrayAttr)
        else []
    )


def add_provenance(op: Operation, rules: Sequence[str]) -> None:
    """Record that these rules, too, made this op."""
    merged = [*provenance(op), *rules]
    attributes: Mapping[str, Attribute] = {
        "isoform.rules": ArrayAttr(StringAttr(r) for r in merged)
    }
    op.attributes |= attributes
