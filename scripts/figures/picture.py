"""SVG pictures of boxes, lines and text that read well on light and on dark pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

STYLE = """
.page { fill: #ffffff }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1f2933 }
.title { font: 600 14px system-ui, sans-serif } .soft { fill: #5b6770; font-size: 11.5px }
.box { fill: #f4f6f8; stroke: #9aa5b1 } .new { fill: #dff3e4; stroke: #2f8f46 }
.class { fill: none; stroke: #7b8794; stroke-dasharray: 4 3 } .line { stroke: #7b8794; fill: none }
.ours { fill: #3b6fd4 } .other { fill: #9fb7e8 } .head { fill: #7b8794 }
@media (prefers-color-scheme: dark) {
.page { fill: #12181f } text { fill: #e4e7eb }
.soft { fill: #9aa5b1 } .box { fill: #1f2933; stroke: #616e7c }
.new { fill: #123821; stroke: #57b36c } .class, .line { stroke: #9aa5b1 }
.ours { fill: #7ba4f5 } .other { fill: #4a5f8c } .head { fill: #9aa5b1 } }
"""
LETTER = 7.9  # the width of a letter of 13 px


@dataclass
class Picture:
    """A picture, drawn by adding to it; it is as large as what was drawn."""

    parts: list[str] = field(default_factory=list[str])
    width: float = 0
    height: float = 0

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """A line of text; `y` is its base line."""
        end = {"start": x + len(text) * LETTER, "middle": x + len(text) * LETTER / 2, "end": x}
        self._grow(end[anchor], y + 4)
        attributes = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"' + (
            f' class="{kind}"' if kind else ""
        )
        self.parts.append(f'<text {attributes} xml:space="preserve">{escape(text)}</text>')

    def box(self, x: float, y: float, w: float, h: float, kind: str = "box", r: int = 5) -> None:
        """A rectangle with round corners."""
        self._grow(x + w, y + h)
        size = f'x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{r}"'
        self.parts.append(f'<rect {size} class="{kind}"/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A curve from one point down, or to the right, to another."""
        if abs(y2 - y1) >= abs(x2 - x1) / 4:
            middle = (y1 + y2) / 2
            curve = f"C{x1:g},{middle:g} {x2:g},{middle:g} {x2:g},{y2:g}"
        else:
            curve = f"L{x2:g},{y2:g}"
        path = f'<path d="M{x1:g},{y1:g} {curve}" class="line" marker-end="url(#a)"/>'
        self.parts.insert(0, path)

    def _grow(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)

    def svg(self, title: str) -> str:
        """The picture as a file."""
        width, height = round(self.width + 12), round(self.height + 12)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -12 {width + 12} {height + 12}" '
        )
        head += f'width="{width + 12}" height="{height + 12}" role="img">'
        marker = (
            '<marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0,0 L8,4 L0,8 z" class="head"/></marker>'
        )
        label = f"<title>{escape(title)}</title><style>{STYLE}</style><defs>{marker}</defs>"
        page = f'<rect x="-12" y="-12" width="{width + 12}" height="{height + 12}" class="page"/>'
        return "\n".join([head, label, page, *self.parts, "</svg>", ""])
