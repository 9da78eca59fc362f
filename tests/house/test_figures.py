"""The figures of the documents are drawn from programs, and read well on light and dark pages."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
DRAWN = ("derivation", "levels", "partial", "reuse", "saturation", "speed", "substitution")


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_shown_has_a_title_and_two_colour_schemes(name: str) -> None:
    text = (PICTURES / f"{name}.svg").read_text("utf-8")
    root = ElementTree.fromstring(text)
    assert root.findtext("{http://www.w3.org/2000/svg}title")
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", ""), "nothing is loaded"
    pages = [ROOT / "README.md", ROOT / "docs" / "concepts.md"]
    assert any(f"pictures/{name}.svg)" in page.read_text("utf-8") for page in pages)


@pytest.mark.parametrize("name", ["levels", "reuse", "saturation"])
def test_a_figure_is_what_its_program_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others come from searches of some seconds: `python scripts/draw_figures.py`."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import draw_figures

    assert set(draw_figures.FIGURES) == set(DRAWN)
    title, draw = draw_figures.FIGURES[name]
    written = (PICTURES / f"{name}.svg").read_text("utf-8")
    assert draw().svg(title) == written, "run: python scripts/draw_figures.py"
    for module in [m for m in sys.modules if m.partition(".")[0] in ("draw_figures", "figures")]:
        del sys.modules[module]
