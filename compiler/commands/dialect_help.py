"""Describe dialects: `--list-dialects` and `--help-dialect`, from the ops' own definitions."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping

from xdsl.context import Context
from xdsl.ir import Dialect, Operation
from xdsl.irdl import OptionalDef, VariadicDef

from ...dialects.errors import UserError, did_you_mean
from ..registry import DIALECTS

OWN = tuple(name for name, _ in DIALECTS)


def list_dialects(names: Iterable[str], plugins: Iterable[str] = ()) -> str:
    """List the dialects, isoform's and the plug-ins' first."""
    own = [*OWN, *sorted(plugins)]
    rest = sorted(set(names) - set(own))
    lines = ["isoform and plug-ins:", *(f"  {name}" for name in own)]
    return "\n".join([*lines, "xDSL:", *(f"  {name}" for name in rest)]) + "\n"


def help_dialect(name: str, context: Context) -> str:
    """Describe a dialect's operations, each with its signature, or one operation whole.

    Args:
        name: of a dialect, as `graph`, or of an operation, as `graph.conv`.

    Raises: UserError for an unknown name.
    """
    dialect_name, dot, _ = name.partition(".")
    known = set(context.registered_dialect_names)
    if dialect_name not in known:
        hint = did_you_mean(dialect_name, known) or "isoform-opt --list-dialects lists them"
        raise UserError(f"unknown dialect '{dialect_name}'", hint=hint)
    dialect = context.get_dialect(dialect_name)
    ops = {op.name: op for op in dialect.operations}
    if not dot:
        return _whole(dialect, ops)
    if name not in ops:
        raise UserError(f"unknown operation '{name}'", hint=did_you_mean(name, ops))
    return f"{signature(ops[name])}\n\n{docstring(ops[name]) or '(no description)'}\n"


def _whole(dialect: Dialect, ops: dict[str, type[Operation]]) -> str:
    lines = [f"{dialect.name}: {len(ops)} operations"]
    for name in sorted(ops):
        summary = docstring(ops[name]).partition("\n")[0]
        lines += ["", f"  {signature(ops[name])}", *([f"      {summary}"] if summary else [])]
    attributes = sorted(a.name for a in dialect.attributes)
    if attributes:
        lines += ["", "types and attributes:", *(f"  {a}" for a in attributes)]
    return "\n".join([*lines, "", f"--help-dialect {dialect.name}.OP describes one."]) + "\n"


def signature(op: type[Operation]) -> str:
    """`graph.conv(x, w, bias?) {strides, groups = 1} -> result`.

    `?` may be left out, `*` may be many; a value after `=` is the default.
    """
    get = getattr(op, "get_irdl_definition", None)
    if get is None:
        return op.name
    found = get()
    defaults: dict[str, object] = getattr(op, "DEFAULTS", {})
    operands = _listed(found.operands, {})
    given = _listed([*found.properties.items(), *found.attributes.items()], defaults)
    regions, results = _listed(found.regions, {}), _listed(found.results, {})
    text = f"{op.name}({operands})"
    text += f" {{{given}}}" if given else ""
    text += f" regions ({regions})" if regions else ""
    return text + (f" -> {results}" if results else "")


def docstring(op: type[Operation]) -> str:
    """An op's own docstring, empty where it has none."""
    return inspect.cleandoc(op.__dict__.get("__doc__") or "")


def _listed(definitions: Iterable[tuple[str, object]], defaults: Mapping[str, object]) -> str:
    return ", ".join(
        f"{name} = {defaults[name]}" if name in defaults else f"{name}{_mark(definition)}"
        for name, definition in definitions
    )


def _mark(definition: object) -> str:
    if isinstance(definition, OptionalDef):
        return "?"
    return "*" if isinstance(definition, VariadicDef) else ""
