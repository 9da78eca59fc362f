"""The page of `isoform view`: one HTML file that holds its data, style and programs."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from ....dialects.errors import UserError
from .data import page_data

# As they are read: what one defines the next uses.
PROGRAMS = ("graph.js", "charts.js", "view.js")
LIBRARY = "dagre.min.js"


def page(report: Mapping[str, Any]) -> str:
    """The page of a report; the same report gives the same bytes.

    The page's policy allows these programs and this style only, by their hashes: nothing is loaded,
    and no name in the report can become a program.

    Args:
        report: of this version, with `levels`.
    """
    style = _text("view.css")
    # The library's last line names a file that is not there.
    library = _text("dagre.LICENSE.txt", "/*", "*/") + _text(LIBRARY).partition("//# source")[0]
    program = "\n".join(map(_text, PROGRAMS))
    return Template(_text("page.html")).substitute(
        title=escape(report["source"] or "program"),
        style=style,
        style_hash=_hash(style),
        script_hashes=f"{_hash(library)} {_hash(program)}",
        data=embedded(page_data(report)),
        library=library,
        program=program,
    )


def embedded(value: Any) -> str:
    """JSON that ends no element of HTML, whatever strings it holds.

    Raises:
        UserError: a number is not finite.
    """
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise UserError(
            "this is not a report of isoform optimize: a number is not finite"
        ) from error
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _text(name: str, before: str = "", after: str = "") -> str:
    return before + files(__package__ or "").joinpath(name).read_text("utf-8") + after


def _hash(text: str) -> str:
    """As a content security policy names a program or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
