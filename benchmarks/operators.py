"""Single operators at the shapes of real models, beside other runtimes on the same files.

    python benchmarks/operators.py [--threads N] [--against onnxruntime,openvino] [NAME ...]
    python benchmarks/operators.py --out ROWS.json
    python benchmarks/operators.py --write ROWS.json ...

Each row is an ONNX file of a node or a few. Runtimes take turns within one process, some
milliseconds each; the ratio is the median of the paired ratios, theirs over ours. On one thread it
is that thread's own clock. `--write` makes docs/results/operators.md of rows that were measured.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
from operator_cases import Case, cases
from operator_reasons import REASONS

import isoform
from isoform.compiler.peers.model_file import USERS_FILE, PeerModel
from isoform.compiler.peers.runtimes import PEERS, Refused
from isoform.compiler.peers.timing import cpu_name, difference
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.dialects.kernel import CallOp, KernelOp
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.runtime.execute import thread_clock
from isoform.testing.per_op import algorithm

BAR = 0.97
TURN = 0.004  # seconds that a runtime runs before the next has its turn
RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results" / "operators.md"
Row = dict[str, Any]


def kernels_of(program: Program, options: CpuOptions) -> str:
    """The kernels that run a program, by kind."""
    block = place(program, options).main.body.block
    found = Counter(algorithm(op) for op in block.ops if isinstance(op, KernelOp | CallOp))
    return ", ".join(f"{n} {kind}" if n > 1 else kind for kind, n in found.items())


def paired(
    runs: Mapping[str, Callable[[], Any]], seconds: float, threads: int
) -> dict[str, list[float]]:
    """Seconds of each runtime in each round; each has a turn of about `TURN` seconds."""
    clock, times = thread_clock(threads), {name: list[float]() for name in runs}
    counts: dict[str, int] = {}
    for name, run in runs.items():
        run()
        started = clock()
        run()
        counts[name] = max(1, int(TURN / max(clock() - started, 1e-7)))
    end = time.perf_counter() + seconds
    while len(times["isoform"]) < 7 or time.perf_counter() < end:
        for name, run in runs.items():
            run()  # the runtime before has filled the caches
            started = clock()
            for _ in range(counts[name]):
                run()
            times[name].append((clock() - started) / counts[name])
    return times


def measured(name: str, case: Case, given: argparse.Namespace) -> Row:
    """One row: milliseconds, ratios, the greatest difference, and what ran."""
    options = CpuOptions(given.threads, "default", 1e-5)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "operator.onnx"
        onnx.save(case.model(), file)
        program = isoform.load(file)
        session = isoform.compile(program, threads=given.threads)
        runs: dict[str, Callable[[], Any]] = {"isoform": lambda: session.run(None, case.feeds)}
        row: Row = {"name": name, "kernels": kernels_of(program, options), "refused": {}}
        for peer in given.against.split(","):
            model = PeerModel(file, f"{file.name}, {USERS_FILE}", program)
            try:
                runs[peer] = PEERS[peer](model, given.threads, case.feeds).run
            except Refused as error:
                row["refused"][peer] = str(error)[:60]
    row["apart"] = max(
        (difference(runs[p](), runs["isoform"]()) for p in runs if p != "isoform"), default=0.0
    )
    times = paired(runs, given.seconds, given.threads)
    session.close()
    ours = times.pop("isoform")
    row["ms"] = 1e3 * statistics.median(ours)
    row["peers"] = {
        peer: {
            "ms": 1e3 * statistics.median(theirs),
            "ratio": statistics.median(b / a for a, b in zip(ours, theirs, strict=True)),
        }
        for peer, theirs in times.items()
    }
    return row


def shown(row: Row, peers: Sequence[str]) -> str:
    """A row of the table."""
    cells = [row["name"], row["kernels"] or "a copy", f"{row['ms']:.3f}"]
    below = False
    for peer in peers:
        found = row["peers"].get(peer)
        if found is None:
            cells += ["refused", "none"]
            continue
        below = below or found["ratio"] < BAR
        cells += [f"{found['ms']:.3f}", f"{found['ratio']:.2f}"]
    reason = REASONS.get(row["name"], "not examined yet") if below else "none needed"
    return f"| {' | '.join([*cells, reason])} |"


def document(given: argparse.Namespace) -> str:
    """The results page, of the files of rows that `--write` names."""
    parts = [_HEAD]
    for name in given.write:
        data = json.loads(Path(name).read_text())
        rows, peers = data["rows"], data["peers"]
        threads = "one thread" if data["threads"] == 1 else f"{data['threads']} threads"
        ratios = {p: [r["peers"][p]["ratio"] for r in rows if p in r["peers"]] for p in peers}
        counts = "; ".join(
            f"{peer}: {sum(x >= BAR for x in found)} of {len(found)} rows at {BAR} or more, "
            f"geometric mean {statistics.geometric_mean(found):.2f}"
            for peer, found in ratios.items()
        )
        parts += [f"## On {threads}", "", data["provenance"], "", f"{counts}.", ""]
        head = ["operator", "kernels", "isoform ms"]
        for peer in peers:
            head += [f"{peer} ms", f"{peer} / isoform"]
        parts += [f"| {' | '.join([*head, 'reason'])} |", "|---" * (len(head) + 1) + "|"]
        parts += [*(shown(row, peers) for row in rows), ""]
    return "\n".join(parts)


_HEAD = """# Single operators beside other runtimes

Each row is an ONNX file of one node or a few (`benchmarks/operator_cases.py`), run as it is.
Ratios are the other's time over isoform's: above 1 isoform is faster. A row below 0.97 says why.
What one thread takes is measured by that thread's clock: other load changes it through caches and
memory only. OpenVINO's times include its Python call and the copies of inputs and results.
"""


def main() -> None:
    """Measure, and print, keep or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--against", default="onnxruntime")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--commit", default="unknown", help="of the provenance line")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--write", nargs="+", metavar="ROWS.json")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.write:
        RESULTS.write_text(document(given))
        return
    peers, rows = given.against.split(","), list[Row]()
    for name, case in cases().items():
        if given.names and not any(n in name for n in given.names):
            continue
        rows.append(measured(name, case, given))
        print(shown(rows[-1], peers), f"apart {rows[-1]['apart']:.1e}", flush=True)
        if given.out is not None:
            command = f"`python benchmarks/operators.py --threads {given.threads}`"
            machine = f"{cpu_name()} (AVX-512), 2 shared cores"
            today = datetime.now(UTC).date()
            line = f"> {today} · {machine} · commit {given.commit} · {command}"
            data = {"rows": rows, "peers": peers, "threads": given.threads, "provenance": line}
            given.out.write_text(json.dumps(data))


if __name__ == "__main__":
    main()
