"""`optimize -o OUT.onnx`: time the file and its source in onnxruntime, before it is written.

A program that is faster here may be slower there: another runtime fuses other groups of operators
and has other kernels. So the report compares the two files where that runtime is installed.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...dialects.errors import UserError
from ...dialects.program import Program
from ...dialects.types import Array
from ...passes.margins import ACCEPT
from ..commands.inputs import draw_inputs
from ..frontends.program_file import weight_types
from ..peers.model_file import PeerModel, peer_model
from ..peers.runtimes import Peer, onnxruntime_peer
from ..peers.timing import difference, interleave, median

# Larger weights are not compared: onnxruntime would hold them once or twice for each of the files.
MOST_BYTES = 1 << 29
# At least so many rounds; further rounds while these seconds last.
ROUNDS, SECONDS = 5, 2.0


def compare_in_onnxruntime(
    source: Program, name: str | Path, written: Program, threads: int, seed: int, command: str
) -> dict[str, Any]:
    """The entry `onnxruntime` of a report: medians of both files, run in turn.

    Args:
        source, name: the program that was optimised, and what it was loaded from.
        written: the program about to be written.
        command: how a user repeats it.

    Returns:
        `source`, `source_s`, `result_s`, `ratio` (above 1: the result is faster), `difference`
        (of outputs, relative to their greatest magnitude), `threads`, `command`; or a `note` where
        there is nothing to compare with.

    Raises:
        UserError: onnxruntime runs the source but not the result.
    """
    if _weight_bytes(written) > MOST_BYTES:
        return {"note": f"not compared in onnxruntime, which would load both files: {command}"}
    feeds = draw_inputs(source, seed)
    with peer_model(source, name) as model, TemporaryDirectory(prefix="isoform-") as folder:
        try:
            before = onnxruntime_peer(model, threads, feeds)
        except ImportError:
            return {"note": "onnxruntime is not installed: not compared there"}
        except UserError as error:
            return {"note": f"not compared: onnxruntime does not run the source: {error.message}"}
        after = _written_peer(written, Path(folder), threads, feeds)
        runs = {"source": before.run, "result": after.run}
        times = interleave(runs, SECONDS, least=ROUNDS)
        apart = difference(after.run(), before.run())
    source_s, result_s = median(times["source"]), median(times["result"])
    return {
        "source": before.model,
        "source_s": source_s,
        "result_s": result_s,
        "ratio": source_s / result_s,
        "difference": apart,
        "threads": threads,
        "command": command,
    }


def _weight_bytes(program: Program) -> int:
    types = weight_types(program.module).values()
    return sum(dtype.itemsize * math.prod(shape) for dtype, shape in types)


def _written_peer(program: Program, folder: Path, threads: int, feeds: Mapping[str, Array]) -> Peer:
    """onnxruntime with the program as it will be written."""
    from ...lowering.graph_to_onnx.exporter import export_onnx

    path = folder / "written.onnx"
    export_onnx(program, path)
    try:
        return onnxruntime_peer(PeerModel(path, "the written file", program), threads, feeds)
    except UserError as error:
        raise UserError(
            f"onnxruntime does not run the result, so it is not written: {error.message}",
            hint="-o OUT.mlir writes it for isoform",
        ) from error


def repeat_command(
    model: str, output: str, shapes: Mapping[str, Sequence[int]], flags: Mapping[str, Any]
) -> str:
    """The `isoform bench` command that runs both files in turn."""
    words = ["isoform", "bench", model]
    for name, dims in shapes.items():
        words += ["--shape", f"{name}={','.join(map(str, dims))}"]
    words += ["--against", f"onnxruntime,onnxruntime:{output}"]
    for name, value in flags.items():
        words += [f"--{name}", str(value)]
    return shlex.join(words)


def onnxruntime_line(found: Mapping[str, Any]) -> str:
    """The entry in words."""
    if "note" in found:
        return str(found["note"])
    before, after = (found[key] * 1e3 for key in ("source_s", "result_s"))
    return (
        f"in onnxruntime: {before:.3f} ms ({found['source']}) -> {after:.3f} ms (the written "
        f"file), {found['ratio']:.2f}x"
    )


def slower_there(found: Mapping[str, Any]) -> str:
    """What the message says of a file that is slower in onnxruntime; empty where it is not.

    `ACCEPT.written_file` is a ratio of seconds that may be noise.
    """
    if "note" in found or found["result_s"] <= found["source_s"] * ACCEPT.written_file:
        return ""
    return (
        f"in onnxruntime the written file is slower than its source: "
        f"{found['result_s'] / found['source_s']:.2f} times the time"
    )
