"""Describe passes: the lists behind `--list-passes` and `--help-pass`."""

import inspect
from collections.abc import Iterable
from dataclasses import MISSING, Field, fields
from typing import Any, get_args, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.hints import type_repr

from ...dialects.errors import UserError
from ..pass_manager import Passes, load_pass


def list_passes(passes: Passes, own: Iterable[str]) -> str:
    """List all passes, one a line with the first line of its docstring, `own` ones first."""
    first = sorted(set(own) & set(passes))
    rest = sorted(set(passes) - set(first))
    width = max((len(name) for name in passes), default=0)
    lines: list[str] = []
    for heading, names in (("isoform and plug-ins:", first), ("xDSL:", rest)):
        if names:
            lines.append(heading)
            lines += [f"  {name:<{width}}  {_summary(name, passes)}".rstrip() for name in names]
    return "\n".join(lines) + "\n"


def help_pass(name: str, passes: Passes) -> str:
    """Describe one pass: its docstring, its options with types and defaults, its `more_help()`.

    Raises: UserError for an unknown pass.
    """
    cls = load_pass(name, passes)
    lines = [name, "", _docstring(cls) or "(no description)", ""]
    hints = get_type_hints(cls)
    options = [f for f in fields(cls) if f.name != "name" and f.init]
    if not options:
        return "\n".join([*lines, "It has no options."]) + "\n"
    shown = [f"{f.name.replace('_', '-')}={_type(hints[f.name])}" for f in options]
    width = max(map(len, shown))
    lines.append("Options:")
    lines += [f"  {s:<{width}}  {_default(f)}" for s, f in zip(shown, options, strict=True)]
    more = getattr(cls, "more_help", None)
    lines += ["", more()] if more is not None else []
    return "\n".join(lines) + "\n"


def _summary(name: str, passes: Passes) -> str:
    try:
        return _docstring(load_pass(name, passes)).partition("\n")[0]
    except UserError as error:
        return f"({error.message})"


def _docstring(cls: type[ModulePass]) -> str:
    """Return the class's own docstring; the one that dataclass generates says nothing."""
    text = inspect.cleandoc(cls.__doc__ or "")
    return "" if text.startswith(f"{cls.__name__}(") else text


def _type(hint: Any) -> str:
    return type_repr(hint) if get_args(hint) else getattr(hint, "__name__", str(hint))


def _default(field: Field[Any]) -> str:
    value = field.default
    if value is MISSING:
        if field.default_factory is MISSING:
            return "required"
        value = field.default_factory()
    if isinstance(value, bool):
        return f"default {str(value).lower()}"
    return "optional" if value is None else f"default {value!r}"
