"""Write certificates: what was done to a program, and that the result is the same program.

A certificate is written after the result is on disk, from the files as written. Anyone who
has the files can check it again without the search (check_certificate.py).
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ...dialects.errors import UserError
from ...dialects.files import cannot, write_whole
from ...dialects.program import Program, pipeline_of
from ...passes.equivalence import Verdict
from ...passes.verify_equivalence import without_time
from ..frontends.models import load
from ..frontends.program_file import module_text, read_program, used_weights, weights_file
from ..version import VERSION as ISOFORM_VERSION
from .certificate_schema import FORMAT, PRECISION, VERSION
from .comparison import compared

ZOO = "zoo:"
MEMORY = "memory:"


@dataclass(frozen=True)
class NamedModel:
    """A model as named on a command line."""

    name: str
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    batch: int = 1
    seed: int = 0

    def load(self) -> Program:
        """The program. Raises UserError as `models.load`."""
        return load(self.name, self.shapes, batch=self.batch, seed=self.seed)


@dataclass(frozen=True)
class CertifiedWork:
    """What was done to a program.

    Attributes:
        rewrites: `rule`, `place` and `proof` of each; more fields are left out.
        tolerance: relative error that an inexact algorithm may add when the result is compiled.
        precision: of the report, where the precision of products was lowered. The result is then
            compared with the source lowered so, and the certificate says it.
    """

    pipeline: str
    rewrites: Sequence[Mapping[str, Any]]
    seed: int
    tolerance: float = 0.0
    precision: Mapping[str, Any] | None = None


def certify(
    source: NamedModel, result: Path, work: CertifiedWork, path: Path, budget: float = 60.0
) -> Verdict:
    """Compare the result on disk with its source and write the certificate.

    Raises:
        UserError: the programs differ, so nothing can be certified; a file cannot be read or
            written.
    """
    folder = path.resolve().parent
    made = NamedModel(str(result))
    before, after = source.load(), made.load()
    verdict = compared(before, after, seed=work.seed, budget=budget, precision=work.precision)
    if verdict.kind == "different":
        hint = "isoform bisect says which rewrite made it"
        raise UserError(f"no certificate: {without_time(verdict)}", where=str(result), hint=hint)
    models = (_model(source, before, folder), _model(made, after, folder))
    write_whole(path, json.dumps(_document(*models, work, verdict), indent=1) + "\n")
    return verdict


def certificate_of(
    source: Program, result: Program, work: CertifiedWork, budget: float = 60.0
) -> dict[str, Any]:
    """The certificate of two programs in memory, with hashes of their texts and weights.

    Raises:
        UserError: the programs differ, so nothing can be certified.
    """
    verdict = compared(source, result, seed=work.seed, budget=budget, precision=work.precision)
    if verdict.kind == "different":
        raise UserError(f"no certificate: {without_time(verdict)}")
    models = (memory_entry("source", source), memory_entry("result", result))
    return _document(*models, work, verdict)


def certified(source: Program, result: Program, report: Mapping[str, Any]) -> dict[str, Any]:
    """The certificate of a result of `optimize`; see `certificate_of`.

    Args:
        report: of that run of `optimize`.
    """
    rewrites, precision = lasting_rewrites(report), lowered_precision(report)
    work = CertifiedWork(pipeline_of(result.module), rewrites, report["seed"], 0.0, precision)
    return certificate_of(source, result, work)


def lasting_rewrites(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rewrites that the result contains at its level.

    Algorithms (entries with an "error") are chosen while lowering to kernels. Only written kernels
    contain them, and list them themselves (`algorithms` of cpu.py).
    """
    return [rewrite for rewrite in report["rewrites"] if "error" not in rewrite]


def lowered_precision(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """A report's entry on precision, if the result computes products in a lower one."""
    entry: Mapping[str, Any] = report.get("precision", {})
    if not entry.get("applied"):
        return None
    return {key: entry[key] for key in PRECISION["properties"]}


def body_hash(body: Mapping[str, Any]) -> str:
    """sha256 of the body as JSON with sorted keys, no spaces, in ASCII."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def versions() -> dict[str, str]:
    """The settings that the verdict may depend on."""
    found = {"isoform": ISOFORM_VERSION, "python": platform.python_version()}
    for name in ("xdsl", "numpy", "onnx"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def _document(
    source: Mapping[str, Any], result: Mapping[str, Any], work: CertifiedWork, verdict: Verdict
) -> dict[str, Any]:
    """A certificate: the body, its hash, and separately what differs between equal runs."""
    body = {
        "format": FORMAT,
        "version": VERSION,
        "source": source,
        "result": result,
        "pipeline": work.pipeline,
        "rewrites": [{k: r[k] for k in ("rule", "place", "proof")} for r in work.rewrites],
        "verdict": _lasting(verdict),
        "seed": work.seed,
        "tolerance": work.tolerance,
        "versions": versions(),
        **({} if work.precision is None else {"precision": work.precision}),
    }
    made = {"date": _now(), "seconds": verdict.seconds}
    return {"body": body, "body_sha256": body_hash(body), "made": made}


def _lasting(verdict: Verdict) -> dict[str, Any]:
    """A verdict without the parts that differ between equal runs."""
    return {key: value for key, value in verdict.as_json().items() if key != "seconds"}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


# --- files --------------------------------------------------------------------------------------


def _model(model: NamedModel, program: Program, folder: Path) -> dict[str, Any]:
    """A model and the hashes of its files, their names relative to the certificate's folder."""
    shapes = {name: list(dims) for name, dims in model.shapes.items()}
    if model.name.startswith(ZOO):
        name, files = model.name, [built_entry(model.name, program)]
    else:
        name = relative_name(Path(model.name), folder)
        files = [file_entry(path, folder) for path in files_of(Path(model.name))]
    return {
        "name": name,
        "batch": model.batch,
        "seed": model.seed,
        "shapes": shapes,
        "files": files,
    }


def memory_entry(role: str, program: Program) -> dict[str, Any]:
    """The identity of a program without a file: hashes of its text and weights (zoo models)."""
    name = f"{MEMORY}{role}"
    return {
        "name": name,
        "batch": 1,
        "seed": 0,
        "shapes": {},
        "files": [built_entry(name, program)],
    }


def relative_name(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder)).as_posix()


def file_entry(path: Path, folder: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        size = path.stat().st_size
    except OSError as error:
        raise cannot("read", path, error) from error
    return {"name": relative_name(path, folder), "bytes": size, "sha256": digest}


def built_entry(name: str, program: Program) -> dict[str, Any]:
    """A zoo model has no file: its text and weights identify it."""
    digest = hashlib.sha256(text := module_text(program.module).encode())
    for key in used_weights(program.module):
        digest.update(f"{key} {program.weights.content_hash(key)}\n".encode())
    return {"name": name, "bytes": len(text), "sha256": digest.hexdigest()}


def files_of(path: Path) -> list[Path]:
    """A model's file, then the files that hold its weights.

    Raises:
        UserError: the model cannot be read.
    """
    if path.suffix.lower() == ".onnx":
        from ...lowering.onnx_to_graph.loading import load_model

        return [path, *_external(load_model(path).proto, path.resolve().parent)]
    side = weights_file(path, read_program(path))
    return [path] if side is None else [path, side]


def _external(proto: Any, folder: Path) -> list[Path]:
    """Files of external data, each once, sorted by name."""
    from onnx.external_data_helper import uses_external_data

    names: set[str] = set()
    graphs = [proto.graph]
    while graphs:
        graph = graphs.pop()
        for tensor in graph.initializer:
            entries = tensor.external_data if uses_external_data(tensor) else ()
            names |= {entry.value for entry in entries if entry.key == "location"}
        for node in graph.node:
            graphs += [g for a in node.attribute for g in (a.g, *a.graphs) if g.node]
    return [folder / name for name in sorted(names)]


__all__ = [
    "CertifiedWork",
    "NamedModel",
    "body_hash",
    "certify",
    "files_of",
]
