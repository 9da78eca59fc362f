"""Users' own ONNX files: what isoform makes of them, and time beside onnxruntime on the same files.

    python benchmarks/models.py --out ROWS.json FILE.onnx ...     measure, and add rows
    python benchmarks/models.py --write ROWS.json ...             docs/results/models.md

Each file is a process of its own, on one thread. Inputs are those of `FILE.npz` if it is there, of
`model_files.py`, or drawn. Both runtimes take turns, some milliseconds each, on the thread's own
clock. A file that fails has the line of the error in place of figures. Where results differ by more
than 1e-5, both are compared with the program's meaning in float64, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from model_files import GIVEN, NOTES, Given
from operators import BAR, paired

import isoform
from isoform.compiler import api
from isoform.compiler.commands.check import check_model
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.peers.model_file import USERS_FILE, PeerModel
from isoform.compiler.peers.runtimes import PEERS
from isoform.compiler.peers.timing import cpu_name, difference
from isoform.dialects.program import Program
from isoform.dialects.types import Array
from isoform.lowering.onnx_to_graph.dynamic_program import DynamicProgram

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results" / "models.md"
AGREE = 1e-5
LONGEST = 900  # seconds that one file may take
Row = dict[str, Any]


def name_of(file: Path) -> tuple[str, Given]:
    """What a file is called in the table, and what it is given."""
    path = file.resolve().as_posix()
    for name, given in GIVEN.items():
        if path.endswith(name):
            return name, given
    beside = file.with_suffix(".npz")
    if beside.is_file():
        arrays = dict(np.load(beside))
        return file.stem, Given({n: a.shape for n, a in arrays.items()}, arrays)
    return file.stem, Given()


def inputs_of(program: Program, given: Given) -> dict[str, Array]:
    """An array for each input: the given one, or one that is drawn.

    What decides shapes has a given value: of such a program the other inputs are floats.
    """
    if not program.is_dynamic:
        return {**draw_inputs(program), **given.values}
    draw = np.random.default_rng(0).standard_normal
    drawn = {name: draw(shape).astype(np.float32) for name, shape in given.shapes.items()}
    return {**drawn, **given.values}


def measured(file: Path, seconds: float) -> Row:
    """One row, in this process."""
    name, given = name_of(file)
    shapes = {n: tuple(s) for n, s in given.shapes.items()}
    started = time.process_time()
    program = api.load(file, shapes)
    session = isoform.compile(api.improve(program), threads=1)
    feeds = inputs_of(program, given)
    ours = session.run(None, feeds)
    row: Row = {"name": name, "compile": time.process_time() - started}
    checked: Program | Path = file
    if isinstance(program, DynamicProgram):
        checked = program = program.bind(feeds)
    check = check_model(checked, shapes)
    row["kinds"], row["kept"] = check.totals, dict(Counter(b.op for b in check.blockers))
    peer = PEERS["onnxruntime"](PeerModel(file, f"{file.name}, {USERS_FILE}", program), 1, feeds)
    theirs = peer.run()
    row["apart"] = difference(ours, theirs)
    if not row["apart"] <= AGREE:
        exact = isoform.compile(program, "reference").run(None, feeds)
        row["exact"] = difference(ours, exact), difference(theirs, exact)
    times = paired(
        {"isoform": lambda: session.run(None, feeds), "onnxruntime": peer.run}, seconds, 1
    )
    a, b = times["isoform"], times["onnxruntime"]
    row["ms"], row["peer_ms"] = 1e3 * median(a), 1e3 * median(b)
    row["ratio"] = median(y / x for x, y in zip(a, b, strict=True))
    return row


def in_its_own_process(file: Path, seconds: float) -> Row:
    """One row, or the line of the error that the file ends in."""
    words = [sys.executable, __file__, "--row", "--seconds", str(seconds), str(file)]
    name = name_of(file)[0]
    if file.suffix == ".txt":  # why there is no file (scripts/export_models.py)
        return {"name": name, "error": file.read_text()}
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return {"name": name, "error": f"not done after {LONGEST} s"}
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    lines = done.stderr.strip().splitlines() or [f"ended by signal {-done.returncode}"]
    return {"name": name, "error": lines[-1][:300]}


def shown(row: Row) -> str:
    """A row of the table: each cell has a figure, or the error's line."""
    if "error" in row:
        cells = [row["name"], *["none"] * 6, row["error"].replace("|", "/")]
        return f"| {' | '.join(cells)} |"
    kinds, kept = row["kinds"], row["kept"]
    nodes = ", ".join(f"{kinds[kind]} {kind}" for kind in kinds if kinds[kind])
    notes = [f"on the host: {', '.join(f'{n} {op}' for op, n in kept.items())}"] if kept else []
    if not row["apart"] <= AGREE:
        own, peer = (f"{x:.0e}" for x in row["exact"])
        notes.append(f"differs; from the float64 meaning: isoform {own}, onnxruntime {peer}")
    if row["ratio"] < BAR:
        notes.append("slower")
    if notes and row["name"] in NOTES:
        notes.append(NOTES[row["name"]])
    cells = [row["name"], nodes, f"{row['compile']:.1f}", f"{row['apart']:.0e}"]
    cells += [f"{row['ms']:.3f}", f"{row['peer_ms']:.3f}", f"{row['ratio']:.2f}"]
    return f"| {' | '.join([*cells, '; '.join(notes) or 'none'])} |"


def document(files: Sequence[str]) -> str:
    """The results page, of the files of rows that `--write` names."""
    parts = [_HEAD]
    for name in files:
        data = json.loads(Path(name).read_text())
        parts += [f"## {data['title']}", "", data["provenance"], "", _counts(data["rows"]), ""]
        parts += [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
        parts += [*(shown(row) for row in data["rows"]), ""]
    return "\n".join(parts)


def _counts(rows: Sequence[Mapping[str, Any]]) -> str:
    ran = [row for row in rows if "error" not in row]
    agree = sum(row["apart"] <= AGREE for row in ran)
    fast = sum(row["ratio"] >= BAR for row in ran)
    return (
        f"{len(ran)} of {len(rows)} run, {agree} agree to {AGREE:g}, and {fast} have a ratio of "
        f"{BAR} or more."
    )


_COLUMNS = ("model", "nodes", "compile, CPU s", "apart", "isoform ms", "onnxruntime ms", "ratio",
            "notes")  # fmt: skip

_HEAD = """# Users' models beside onnxruntime

Each row is a file as its user has it, on one thread. `apart` is the greatest difference of any
output, relative to the output's greatest magnitude; `ratio` is onnxruntime's time over isoform's,
the median of the paired ratios: above 1 isoform is faster. `compile` starts from an empty cache and
has the import, the compilation and the first run in it. Nodes are counted as by `isoform check`:
`composed` ones are several ops, `folded` ones shape computations. Files in packages are real models
(`benchmarks/model_files.py` says what they are given); exports have drawn weights
(`scripts/export_models.py`).
"""


def main() -> None:
    """Measure, and print, keep or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--title", default="Models")
    parser.add_argument("--commit", default="unknown", help="of the provenance line")
    parser.add_argument("--out", type=Path, help="rows are added, or put in the place of old ones")
    parser.add_argument("--write", nargs="+", metavar="ROWS.json")
    parser.add_argument("--row", action="store_true", help="one file, in this process, as JSON")
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args()
    if given.write:
        RESULTS.write_text(document(given.write))
        return
    if given.row:
        print(json.dumps(measured(given.files[0], given.seconds)))
        return
    known = {} if given.out is None or not given.out.is_file() else _rows(given.out)
    for file in given.files:
        row = in_its_own_process(file, given.seconds)
        known[row["name"]] = row
        print(shown(row), flush=True)
        if given.out is not None:
            line = f"> {datetime.now(UTC).date()} · {cpu_name()}, shared cores · "
            line += f"commit {given.commit} · `python benchmarks/models.py FILE.onnx ...`"
            data = {"title": given.title, "provenance": line, "rows": list(known.values())}
            given.out.write_text(json.dumps(data, indent=1))


def _rows(path: Path) -> dict[str, Row]:
    return {row["name"]: row for row in json.loads(path.read_text())["rows"]}


if __name__ == "__main__":
    main()
