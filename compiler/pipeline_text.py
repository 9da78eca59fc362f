"""The text of pipelines: passes with options, and the ops they run on, as mlir-opt writes them.

canonicalize,cse
builtin.module(cse,func.func(graph-to-algebra,algebra-inline-copies{max-terms=8}))
"""

import re

from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from ..dialects.errors import UserError, did_you_mean

MODULE, FUNCTION = "builtin.module", "func.func"
_QUOTED = re.compile(r'("(?:\\.|[^"\\])*"|\[[^\]]*\])')
_TOKENS = re.compile(_QUOTED.pattern + r"|([(){},])")

Specs = list[tuple[str | None, ArgSpec]]


def parse_specs(pipeline: str) -> Specs:
    """The passes of a pipeline in order, each with the op that it is nested in (None: in none).

    Raises: UserError for malformed text, and for ops that passes do not run on.
    """
    if not any(token[2] in ("(", ")") for token in _TOKENS.finditer(pipeline)):
        return [(None, spec) for spec in _flat(pipeline)]
    found: Specs = []
    for item in _split(pipeline):
        _add(item, None, found)
    return found


def _add(item: str, anchor: str | None, found: Specs) -> None:
    """Add one pass, or the passes nested in one op."""
    head, bracket, rest = item.partition("(")
    if not bracket or "{" in head:
        found += [(anchor, spec) for spec in _flat(item)]
        return
    op = head.strip()
    if op not in (MODULE, FUNCTION):
        hint = did_you_mean(op, (MODULE, FUNCTION))
        raise UserError(
            f"passes cannot be nested in '{op}'",
            expected=f"{MODULE}(...) or {FUNCTION}(...)",
            hint=hint,
        )
    if op == MODULE and anchor is not None:
        raise UserError(f"{MODULE}(...) stands outside only, and here inside {anchor}(...)")
    if not rest.rstrip().endswith(")"):
        raise UserError(f"malformed pipeline: unexpected text after '{op}(...)'", hint=_HINT)
    for inner in _split(rest.rstrip()[:-1]):
        _add(inner, op, found)


_HINT = "write a,b{option=1 flag=true} or builtin.module(a,func.func(b,c))"


def _split(text: str) -> list[str]:
    """The items between commas, outside quotes, braces and brackets. Raises UserError."""
    items, start, open_ = list[str](), 0, ""
    for token in _TOKENS.finditer(text):
        match token[2]:
            case "(" | "{":
                open_ += token[2]
            case ")" | "}":
                if not open_ or open_[-1] + token[2] not in ("()", "{}"):
                    column = token.start() + 1
                    raise UserError(
                        f"malformed pipeline at column {column} of '{text}': unexpected"
                        f" '{token[2]}'",
                        hint=_HINT,
                    )
                open_ = open_[:-1]
            case "," if not open_:
                items.append(text[start : token.start()])
                start = token.end()
            case _:
                pass
    if open_:
        raise UserError(f"malformed pipeline '{text}': '{open_[-1]}' is not closed", hint=_HINT)
    last = text[start:]
    return [*items, last] if items or last.strip() else []


def _flat(pipeline: str) -> list[ArgSpec]:
    """The passes of a pipeline without nesting."""
    try:
        return list(parse_pipeline(_tight(pipeline)))
    except ArgSpecParseError as error:
        raise _malformed(error) from error


def _tight(pipeline: str) -> str:
    """Drop the whitespace that xDSL's pipeline syntax does not allow, outside quotes."""
    parts = _QUOTED.split(pipeline.strip())
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"\s*([,={])\s*", r"\1", parts[index])
        parts[index] = re.sub(r"\s+(?=})", "", parts[index])
        parts[index] = re.sub(r"\s+", " ", parts[index])
    return "".join(parts)


def _malformed(error: ArgSpecParseError) -> UserError:
    """Shorten xDSL's report (a heading, `name:line:column`, the text, a caret, the message)."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    column = lines[1].rpartition(":")[2]
    return UserError(
        f"malformed pipeline at column {column} of '{lines[2]}': {lines[-1].lower()}",
        hint="write a,b{option=1 flag=true}",
    )
