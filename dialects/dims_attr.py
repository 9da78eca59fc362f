"""`#graph.dims<batch, 2 * seq + 1, 768>`: dims of which some are symbols.

As a tensor type's encoding it names the type's `?`; as a property it is a list of whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

if TYPE_CHECKING:
    from .extents import Dims, Extent


@irdl_attr_definition
class DimsAttr(ParametrizedAttribute):
    """Dims: numbers, and expressions over symbols as their one text."""

    name = "graph.dims"
    dims: ArrayAttr[IntAttr | StringAttr]

    @staticmethod
    def of(dims: Sequence[int | Extent]) -> DimsAttr:
        """The attribute of these dims."""
        return DimsAttr(
            ArrayAttr(IntAttr(d) if isinstance(d, int) else StringAttr(str(d)) for d in dims)
        )

    def extents(self) -> Dims:
        """The dims, of the active `ShapeEnv`."""
        from .extent_text import read_extent
        from .extents import active_env, extent

        env = active_env()
        return tuple(
            d.data if isinstance(d, IntAttr) else extent(read_extent(d.data), env)
            for d in self.dims
        )

    def at(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The numbers that the dims are, for these numbers of their symbols."""
        from .extent_math import value_at
        from .extent_text import read_extent

        return tuple(
            d.data if isinstance(d, IntAttr) else value_at(read_extent(d.data), sizes)
            for d in self.dims
        )

    def symbols(self) -> list[str]:
        """The names in it, in order."""
        from .extent_text import read_extent

        found: list[str] = []
        for d in self.dims:
            if isinstance(d, StringAttr):
                found += sorted(s.name for s in read_extent(d.data).free_symbols)
        return list(dict.fromkeys(found))

    def print_list(self, printer: Printer, opening: str, closing: str) -> None:
        """Print the dims between brackets."""
        text = ", ".join(str(d.data) for d in self.dims)
        printer.print_string(f"{opening}{text}{closing}")

    def print_parameters(self, printer: Printer) -> None:
        self.print_list(printer, "<", ">")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Any]:
        return [parse_dims(parser, parser.Delimiter.ANGLE)]


def dims_as_written(type_: Attribute) -> tuple[Any, ...]:
    """The dims of a tensor type: numbers, and expressions over symbols that ask no `ShapeEnv`."""
    from .extent_text import read_extent

    assert isinstance(type_, TensorType)
    if not isinstance(type_.encoding, DimsAttr):
        return type_.get_shape()
    dims = type_.encoding.dims
    return tuple(d.data if isinstance(d, IntAttr) else read_extent(d.data) for d in dims)


def parse_dims(parser: AttrParser, delimiter: Any) -> ArrayAttr[IntAttr | StringAttr]:
    """Dims between brackets: numbers and expressions."""
    from .extent_text import extent_text, parse_extent

    def dim() -> IntAttr | StringAttr:
        found = parse_extent(parser)
        return IntAttr(int(found)) if found.is_Integer else StringAttr(extent_text(found))

    return ArrayAttr(parser.parse_comma_separated_list(delimiter, dim))
