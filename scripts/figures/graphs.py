"""Pictures of programs: data flow, e-graphs, plans of schedule reuse, texts at each level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.equivalence import ClassOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from figures.picture import LETTER, Picture
from isoform.dialects.algebra import OnesOp, ScopeOp
from isoform.dialects.graph import WeightOp
from isoform.passes.reuse.select import ReusePlan

WIDTH, HEIGHT, ACROSS, DOWN = 164, 40, 12, 34


def shape(value: SSAValue) -> str:
    """`64x256` of a tensor."""
    assert isinstance(value.type, TensorType)
    return "x".join(map(str, value.type.get_shape()))


def label(op: Operation) -> str:
    """What an op is called in a picture."""
    if isinstance(op, WeightOp):
        return f"weight @{op.key}"
    if isinstance(op, ScopeOp):
        reads = [source for source in op.operands if not isinstance(source.owner, OnesOp)]
        if "sum (" not in str(op):
            return "copy"
        return "contraction" if len(reads) > 1 else "sum"
    return op.name.partition(".")[2]


def block_of(module: ModuleOp) -> Block:
    """The ops of a module's one function."""
    function = next(op for op in module.body.block.ops if isinstance(op, FuncOp))
    return function.body.block


def flow(picture: Picture, module: ModuleOp, x: float, y: float) -> float:
    """Draw the data flow of a program from top to bottom; return the width that it took."""
    block = block_of(module)
    ops = [op for op in block.ops if not isinstance(op, ReturnOp | OnesOp)]
    nodes: list[SSAValue | Operation] = [*block.args, *ops]
    depth: dict[SSAValue | Operation, int] = {}
    for node in nodes:
        reads = [_maker(v) for v in node.operands] if isinstance(node, Operation) else []
        depth[node] = 1 + max((depth[r] for r in reads if r in depth), default=-1)
    for node in reversed(nodes):  # what reads nothing stands just above its reader
        if isinstance(node, WeightOp):
            depth[node] = min(depth[use.operation] for use in node.result.uses) - 1
    rows = [[n for n in nodes if depth[n] == d] for d in range(max(depth.values()) + 1)]
    width = max(map(len, rows)) * (WIDTH + ACROSS) - ACROSS
    place: dict[SSAValue | Operation, tuple[float, float]] = {}
    for d, row in enumerate(rows):
        left = x + (width - len(row) * (WIDTH + ACROSS) + ACROSS) / 2
        for k, node in enumerate(row):
            place[node] = left + k * (WIDTH + ACROSS), y + d * (HEIGHT + DOWN)
            _node(picture, node, *place[node])
    for op in ops:
        for number, operand in enumerate(dict.fromkeys(map(_maker, op.operands))):
            if operand in place:
                (x1, y1), (x2, y2) = place[operand], place[op]
                end = x2 + WIDTH * (number + 1) / (len(set(map(_maker, op.operands))) + 1)
                picture.arrow(x1 + WIDTH / 2, y1 + HEIGHT, end, y2 - 2)
    return width


def _maker(value: SSAValue) -> SSAValue | Operation:
    return value.owner if isinstance(value.owner, Operation) else value


def _node(picture: Picture, node: SSAValue | Operation, x: float, y: float) -> None:
    is_op = isinstance(node, Operation)
    new = is_op and "isoform.rules" in node.attributes
    picture.box(x, y, WIDTH, HEIGHT, "new" if new else "box")
    name = label(node) if is_op else f"%{node.name_hint}"
    shapes = dict.fromkeys(map(shape, node.results if is_op else [node]))
    picture.text(x + WIDTH / 2, y + 17, name, anchor="middle")
    count = f"{len(node.results)} of " if is_op and len(node.results) > 1 else ""
    picture.text(x + WIDTH / 2, y + 33, count + ", ".join(shapes), "soft", "middle")


def pair(before: ModuleOp, after: ModuleOp, words: str) -> Picture:
    """A program beside the one that was made of it, and what stands between them."""
    picture = Picture()
    picture.text(0, 14, "before", "title")
    width = flow(picture, before, 0, 28)
    gap = max(90.0, len(words) * LETTER + 30)
    picture.arrow(width + 14, 60, width + gap - 10, 60)
    picture.text(width + gap / 2, 52, words, "soft", "middle")
    picture.text(width + gap, 14, "after", "title")
    flow(picture, after, width + gap, 28)
    return picture


def e_graph(module: ModuleOp) -> Picture:
    """The classes of an e-graph, each with its e-nodes; the chosen ones are green."""
    picture = Picture()
    classes = [op for op in block_of(module).ops if isinstance(op, ClassOp)]
    depth: dict[ClassOp, int] = {}

    def deep(found: ClassOp) -> int:
        if found not in depth:
            depth[found] = 0
            makers = [m for m in map(_maker, found.arguments) if isinstance(m, Operation)]
            reads = [r.owner for m in makers for r in m.operands if isinstance(r.owner, ClassOp)]
            depth[found] = 1 + max((deep(r) for r in reads), default=-1)
        return depth[found]

    rows = [[c for c in classes if deep(c) == d] for d in range(max(map(deep, classes)) + 1)]
    sizes = {c: len(c.arguments) * (WIDTH + ACROSS) + ACROSS for c in classes}
    width = max(sum(sizes[c] + 24 for c in row) for row in rows)
    place: dict[Operation, tuple[float, float]] = {}
    for d, row in enumerate(rows):
        x = (width - sum(sizes[c] + 24 for c in row)) / 2 + 12
        for found in row:
            place[found] = x + sizes[found] / 2, d * 92.0
            picture.box(x, d * 92.0, sizes[found], 60, "class", 9)
            _e_nodes(picture, found, x, d * 92.0, place)
            x += sizes[found] + 24
    for node in [m for c in classes for m in map(_maker, c.arguments) if isinstance(m, Operation)]:
        for number, read in enumerate(node.operands):
            (x1, y1), (x2, y2) = place[read.owner], place[node]  # pyright: ignore[reportArgumentType]
            end = x2 + WIDTH * (number + 1) / (len(node.operands) + 1)
            picture.arrow(x1, y1 + 60, end, y2 - 2)
    return picture


def _e_nodes(
    picture: Picture,
    found: ClassOp,
    x: float,
    y: float,
    place: dict[Operation, tuple[float, float]],
) -> None:
    chosen = found.min_cost_index.data if found.min_cost_index is not None else -1
    for k, argument in enumerate(found.arguments):
        left, node = x + ACROSS + k * (WIDTH + ACROSS), _maker(argument)
        picture.box(left, y + 10, WIDTH, HEIGHT, "new" if k == chosen else "box")
        name = label(node) if isinstance(node, Operation) else f"%{argument.name_hint}"
        if isinstance(node, Operation) and len(node.results) > 1:
            name += f".{node.results.index(argument)}"  # pyright: ignore[reportArgumentType]
        picture.text(left + WIDTH / 2, y + 27, name, anchor="middle")
        picture.text(left + WIDTH / 2, y + 43, shape(argument), "soft", "middle")
        if isinstance(node, Operation):
            place.setdefault(node, (left, y + 10))


def plan(found: ReusePlan) -> Picture:
    """The tree of a plan of schedule reuse: who starts from whom, and how many trials it costs."""
    picture = Picture()
    wide = 300
    depth: dict[object, int] = {}
    counts: dict[int, int] = {}
    place: dict[object, tuple[float, float]] = {}
    for arc in found.arcs:
        d = depth[arc.child] = 0 if arc.parent is None else depth[arc.parent] + 1
        x, y = counts.get(d, 0) * (wide + ACROSS), d * 78.0
        counts[d] = counts.get(d, 0) + 1
        place[arc.child] = x, y
        bridge = arc.child in found.bridges
        picture.box(
            x, y, wide, HEIGHT, "new" if arc.parent is None else "class" if bridge else "box"
        )
        space, summed = (", ".join(map(str, n)) for n in (arc.child.space, arc.child.reduction))
        text = f"{arc.child.kind} [{space} | {summed}]"
        picture.text(x + wide / 2, y + 17, text, anchor="middle")
        how = "in full" if arc.parent is None else "from the one above"
        how = f"a bridge, {how}" if bridge else how
        picture.text(x + wide / 2, y + 33, f"{how}: {arc.cost:.0f} trials", "soft", "middle")
        if arc.parent is not None:
            x1, y1 = place[arc.parent]
            picture.arrow(x1 + wide / 2, y1 + HEIGHT, x + wide / 2, y - 2)
    return picture


def levels(texts: Mapping[str, str], passes: Sequence[str]) -> Picture:
    """The same program at each level, from top to bottom, with the passes between."""
    picture = Picture()
    widths = [len(line) for text in texts.values() for line in text.splitlines()]
    width, y = max(widths) * LETTER + 24, 0.0
    for k, (level, text) in enumerate(texts.items()):
        lines = text.splitlines()
        height = 19 * len(lines) + 36
        picture.box(0, y, width, height)
        picture.text(12, y + 20, level, "title")
        for n, line in enumerate(lines):
            picture.text(12, y + 42 + 19 * n, line)
        y += height
        if k < len(passes):
            picture.arrow(40, y, 40, y + 34)
            picture.text(56, y + 22, passes[k], "soft")
            y += 36
    return picture
