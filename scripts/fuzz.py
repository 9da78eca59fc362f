"""Run random programs here and in onnxruntime, and record where they disagree. Resumable.

python scripts/fuzz.py --count 20000                        ONNX models, effort quick
python scripts/fuzz.py --generator graph --effort default   random_graph instead
python scripts/fuzz.py --optimize 3 --count 500             optimised first, 3 s of budget each

Seeds run from --first up. Each gets one line of JSON in --log; seeds with a line are not run
again. The last lines count the verdicts and the reasons of refusals. Exit status 1 if anything
differs, crashed or hung.

Verdicts: agree; refused (one clear line of ours); differs; crash (an exception other than
UserError, or the process died); hang (longer than --limit seconds).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from isoform.dialects.executor import LocalExecutor, LostError

ROOT = Path(__file__).resolve().parents[1]
Row = dict[str, Any]
BAD = ("differs", "crash", "hang")


# --- one seed -----------------------------------------------------------------------------------


def try_seed(seed: int, asked: argparse.Namespace) -> Row:
    """The verdict on one program."""
    import isoform

    started = time.perf_counter()
    try:
        verdict, detail = (_onnx_case if asked.generator == "onnx" else _graph_case)(seed, asked)
    except isoform.UserError as error:
        verdict, detail = "refused", str(error)
    except Exception as error:  # noqa: BLE001 - a crash is what is looked for
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        verdict, detail = "crash", f"{type(error).__name__}: {error} ({place})"
    return {
        "seed": seed,
        "verdict": verdict,
        "detail": detail,
        "seconds": round(time.perf_counter() - started, 3),
    }


def _session(program: Any, asked: argparse.Namespace) -> Any:
    import isoform

    if asked.optimize:
        program = isoform.optimize(program, budget=asked.optimize)
    return isoform.compile(program, threads=asked.threads, effort=asked.effort)


def _onnx_case(seed: int, asked: argparse.Namespace) -> tuple[str, str]:
    import onnx
    from support.random_onnx import random_model

    import isoform

    case = random_model(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(case.model, path)
        session = _session(isoform.load(path), asked)
    wanted = {i.name for i in case.model.graph.input}
    found = session.run(None, {k: v for k, v in case.inputs.items() if k in wanted})
    names = [o.name for o in case.model.graph.output]
    difference = case.difference(dict(zip(names, found, strict=True)))
    return ("agree", "") if difference is None else ("differs", str(difference))


def _graph_case(seed: int, asked: argparse.Namespace) -> tuple[str, str]:
    from isoform.testing.random_programs import Agreement, random_graph, random_inputs

    program = random_graph(seed, ops=10 + seed % 50, longest=90 if seed % 4 == 0 else 0)
    inputs = random_inputs(program, seed)
    agreement = Agreement.of(program, inputs)
    theirs = _in_onnxruntime(program, inputs)
    for who, found in (("onnxruntime", theirs), ("isoform", None)):
        if who == "isoform":
            session = _session(program, asked)
            values = session.run(None, inputs)
            found = dict(zip(program.output_names, values, strict=True))
        if found is None:
            continue
        difference = agreement.difference(found)
        if difference is not None:
            return "differs", f"{who}: {difference}"
    return "agree", "" if theirs is not None else "not in onnxruntime"


def _in_onnxruntime(program: Any, inputs: Any) -> Any:
    """Outputs by name; None if onnxruntime has no kernel, or the program is not an ONNX model."""
    from support.random_onnx.runtime import session_of

    import isoform
    from isoform.lowering.graph_to_onnx import exporter

    try:
        model = exporter.to_model(program)
    except isoform.UserError:
        return None
    session = session_of(model)
    if session is None:
        return None
    names = [o.name for o in session.get_outputs()]
    used = {i.name for i in session.get_inputs()}
    try:
        found = session.run(names, {k: v for k, v in inputs.items() if k in used})
    except Exception:  # noqa: BLE001 - dtypes that numpy cannot pass, kernels that are not there
        return None
    return dict(zip(names, found, strict=True))


# --- processes ----------------------------------------------------------------------------------


def work(asked: tuple[int, argparse.Namespace]) -> Row:
    """Try one seed, in a process of the executor."""
    sys.path.insert(0, str(ROOT / "tests"))
    return try_seed(*asked)


def campaign(seeds: Sequence[int], asked: argparse.Namespace, tell: Callable[[Row], None]) -> None:
    """Tell rows as they come, from as many processes as asked for."""

    def lost(number: int, error: LostError) -> None:
        verdict = "hang" if str(error) == "late" else "crash"
        detail = "" if verdict == "hang" else "the process died"
        seconds = asked.limit if verdict == "hang" else 0.0
        row = {"seed": seeds[number], "verdict": verdict, "detail": detail, "seconds": seconds}
        tell(row)

    executor = LocalExecutor(asked.jobs, here=False, limit=asked.limit)
    executor.run(work, [(seed, asked) for seed in seeds], lambda _, row: tell(row), lost)


# --- the command --------------------------------------------------------------------------------


def read_log(path: Path) -> dict[int, Row]:
    """Rows of a log by seed; a line that was cut short is left out."""
    rows: dict[int, Row] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            rows[row["seed"]] = row
    return rows


def main() -> int:
    """Run as the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--generator", choices=("onnx", "graph"), default="onnx")
    parser.add_argument("--effort", choices=("quick", "default", "max"), default="quick")
    parser.add_argument("--optimize", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="*", help="these seeds, whatever the log says")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one program")
    parser.add_argument("--log", type=Path, default=Path("fuzz.jsonl"))
    asked = parser.parse_args()
    rows = read_log(asked.log)
    wanted = asked.seeds or range(asked.first, asked.first + asked.count)
    left = [s for s in wanted if asked.seeds or s not in rows]
    with asked.log.open("a") as log:

        def tell(row: Row) -> None:
            rows[row["seed"]] = row
            print(json.dumps(row), file=log, flush=True)
            if row["verdict"] in BAD:
                print(f"{row['seed']}: {row['verdict']}: {row['detail']}", flush=True)

        campaign(left, asked, tell)
    shown = [rows[s] for s in wanted if s in rows]
    counts = Counter(row["verdict"] for row in shown)
    print(f"{len(shown)} programs: " + ", ".join(f"{n} {k}" for k, n in counts.most_common()))
    reasons = Counter(_reason(row["detail"]) for row in shown if row["verdict"] == "refused")
    for reason, count in reasons.most_common():
        print(f"  refused {count}: {reason}")
    return 1 if any(counts[k] for k in BAD) else 0


def _reason(detail: str) -> str:
    """A refusal without the names that differ between programs."""
    import re

    return re.sub(r"'[^']*\d[^']*'", "'...'", detail)[:110]


if __name__ == "__main__":
    sys.exit(main())
