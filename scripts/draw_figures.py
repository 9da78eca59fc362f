"""Draw the figures of docs/concepts.md and of the README as SVG, from programs and tables.

python scripts/draw_figures.py          write docs/pictures/*.svg
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import graphs
from figures.picture import Picture
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from isoform.compiler.registry import make_context
from isoform.passes.reuse.nest import OperatorNest, sketches_of
from isoform.passes.reuse.select import select

ROOT = Path(__file__).resolve().parents[1]
PICTURES, CONCEPTS = ROOT / "docs" / "pictures", ROOT / "docs" / "concepts.md"
SPEED = ROOT / "docs" / "results" / "cpu-models.md"
ALGEBRA = "graph-to-algebra,algebra-inline-copies"
FILE = re.compile(r"<!-- test: file (\S+) -->\n```\w*\n(.*?)```", re.DOTALL)


def programs() -> dict[str, str]:
    """The files that docs/concepts.md shows."""
    return dict(FILE.findall(CONCEPTS.read_text("utf-8")))


def after(text: str, passes: str, *files: str) -> str:
    """What isoform-opt makes of a program; with `e.mlir` in `passes`, the e-graph."""
    with TemporaryDirectory() as folder:
        for name in files:
            (Path(folder) / name).write_text(programs()[name])
        command = [sys.executable, "-m", "isoform.compiler.opt", "-p", passes, "--no-locations"]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True, cwd=folder
        )
        written = Path(folder) / "e.mlir"
        return written.read_text() if written.exists() else done.stdout


def parse(text: str) -> ModuleOp:
    """A module of our dialects and of xDSL's `equivalence`."""
    return Parser(make_context(), text).parse_module()


def before_and_after(name: str, passes: str, words: str, level: str = "") -> Picture:
    """A program of the page, and what passes make of it."""
    text = programs()[name]
    first = after(text, level) if level else text
    return graphs.pair(parse(first), parse(after(text, f"{level},{passes}".strip(","))), words)


def levels() -> Picture:
    """One program at each level."""
    small = programs()["small.mlir"]
    lowering = {"graph": "", "algebra": ALGEBRA}
    lowering["kernel"] = f"{ALGEBRA},algebra-to-kernel,fuse-kernels"
    texts = {level: body(after(small, passes)) for level, passes in lowering.items()}
    return graphs.levels(texts, ["graph-to-algebra", "algebra-to-kernel, fuse-kernels"])


def body(text: str) -> str:
    """The lines inside of the function, not indented."""
    lines = text.splitlines()[2:-2]
    return "\n".join(line.removeprefix("    ") for line in lines)


def saturation() -> Picture:
    """The e-graph of two products."""
    passes = 'graph-saturate{rules="my.rules" target=h100 e-graph="e.mlir"}'
    return graphs.e_graph(parse(after(programs()["shared.mlir"], passes, "my.rules")))


def reuse() -> Picture:
    """A plan for convolutions of ResNet."""
    sizes = [(64, 56, 64, 3), (128, 28, 128, 3), (256, 56, 64, 1), (64, 56, 256, 1)]
    nests = [_conv(*size) for size in sizes]
    return graphs.plan(select(nests))


def _conv(features: int, side: int, channels: int, window: int) -> OperatorNest:
    space, summed = (1, features, side, side), (channels, window, window)
    pad = window // 2
    sketches = sketches_of("conv2d", space, summed)
    return OperatorNest("conv2d", sketches, space, summed, (1, 1), (1, 1), (pad,) * 4)


def speed() -> Picture:
    """How many times as long other runtimes take, from the first table of the results."""
    text = SPEED.read_text("utf-8")
    start = text.index("| model | isoform |")
    rows = [line.strip("|").split("|") for line in text[start:].split("\n\n")[0].splitlines()[2:]]
    picture, scale, left = Picture(), 190.0, 118.0
    picture.text(0, 14, "time of onnxruntime and OpenVINO, isoform's is 1 (one thread)", "title")
    for k, row in enumerate(rows):
        y = 34 + 40 * k
        picture.text(0, y + 19, row[0].strip())
        for n, (cell, kind) in enumerate(zip(row[2:4], ("ours", "other"), strict=True)):
            ratio = float(cell.split("(")[1].split("x")[0])
            picture.box(left, y + 15 * n, ratio * scale, 13, kind, 2)
            name = ("onnxruntime", "OpenVINO")[n]
            picture.text(left + ratio * scale + 6, y + 11 + 15 * n, f"{ratio:.2f} {name}", "soft")
    bottom = 34 + 40 * len(rows)
    line = f'<path d="M{left + scale:g},24 V{bottom:g}" class="line" stroke-dasharray="3 3"/>'
    picture.parts.append(line)
    return picture


FIGURES: Mapping[str, tuple[str, Callable[[], Picture]]] = {
    "levels": ("A product and a relu at three levels", levels),
    "substitution": (
        "Two products of one operand become one",
        lambda: before_and_after("shared.mlir", "graph-substitute{target=h100}", "one rule"),
    ),
    "saturation": ("An e-graph of two products", saturation),
    "derivation": (
        "A dilated convolution becomes a product and a sum",
        lambda: before_and_after(
            "conv.mlir", "algebra-derive{target=h100}", "derived", "graph-to-algebra"
        ),
    ),
    "partial": (
        "Sixteen images are convolved as two tall ones",
        lambda: before_and_after(
            "images.mlir", "algebra-mutate{target=h100}", "mutated", "graph-to-algebra"
        ),
    ),
    "reuse": ("A plan of schedule reuse", reuse),
    "speed": ("Whole models beside other runtimes", speed),
}


def main() -> None:
    """Write all figures."""
    for name, (title, draw) in FIGURES.items():
        (PICTURES / f"{name}.svg").write_text(draw().svg(title), "utf-8")
        print(f"docs/pictures/{name}.svg")


if __name__ == "__main__":
    main()
