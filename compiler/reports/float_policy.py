"""What each pass does to floats, for reports; and the passes that the user's flags refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace

from xdsl.passes import ModulePass

from ...dialects.errors import UserError
from ...dialects.floats import BITS, Allowed, Floats
from ..pass_manager import load_pass
from ..registry import multiverse

# Labels of those xDSL passes that our pipelines use, or did: they carry none themselves.
OF_XDSL = {"canonicalize": BITS, "cse": BITS, "dce": BITS}


def floats_of(pass_: ModulePass | type[ModulePass]) -> Floats | None:
    """The label of a pass; None for an xDSL or plug-in pass without one."""
    found = getattr(pass_, "floats", None)
    return found if isinstance(found, Floats) else OF_XDSL.get(pass_.name)


def floats_named(name: str) -> Floats | None:
    """The label of a registered pass. Raises UserError for an unknown name."""
    return floats_of(load_pass(name, multiverse().all_passes))


def entry_of(floats: Floats | None) -> dict[str, str]:
    """The fields of a report's entry that state the label."""
    return {"floats": "unlabelled", "infinities": "unknown"} if floats is None else floats.entry()


def permitted(passes: Sequence[ModulePass], allowed: Allowed) -> tuple[ModulePass, ...]:
    """The passes of a pipeline; those with options for the user's flags get them.

    Raises:
        UserError: a pass changes values without --fast-math, or infinities with --strict-nan.
    """
    found: list[ModulePass] = []
    for pass_ in passes:
        options = {f.name for f in fields(pass_)} if is_dataclass(pass_) else set[str]()
        given = {n: True for n in ("fast_math", "strict_nan") if getattr(allowed, n)}
        told = {n: True for n in given if n in options}
        floats = floats_of(pass_)
        if floats is not None and not (told or allowed.allows(floats)):
            raise UserError(allowed.why_not(floats), where=f"pass '{pass_.name}'")
        found.append(replace(pass_, **told) if told else pass_)
    return tuple(found)
