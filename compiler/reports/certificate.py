"""Certificates: what was done to a program, and that the result is the same program.

A certificate is written after the result is on disk, from the files as written. Anyone who
has the files can check it again without the search: `isoform verify CERTIFICATE.json`.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ...dialects.errors import UserError
from ...dialects.files import cannot, read_whole, write_whole
from ...dialects.program import Program, pipeline_of, provenance
from ...passes.equivalence import Verdict, compare, fresh_seed
from ...passes.same_interface import check_comparable
from ...passes.verify_equivalence import without_time
from ..frontends.models import load
from ..frontends.program_file import module_text, read_program, used_weights, weights_file
from ..version import VERSION as ISOFORM_VERSION
from .certificate_schema import FORMAT, PRECISION, SCHEMA, VERSION
from .json_schema import first_fault
from .lowered import as_lowered

# Default number of seconds for checking a certificate again.
CHECKING = 600.0
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
    check_comparable(before, after)
    given = as_lowered(before, work.precision)
    verdict = compare(given, after, seed=work.seed, budget=budget)
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
    check_comparable(source, result)
    given = as_lowered(source, work.precision)
    verdict = compare(given, result, seed=work.seed, budget=budget)
    if verdict.kind == "different":
        raise UserError(f"no certificate: {without_time(verdict)}")
    models = (_in_memory("source", source), _in_memory("result", result))
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


@dataclass(frozen=True)
class Checked:
    """The outcome of checking a certificate again.

    Attributes:
        verdict: of the comparison made now.
        body: the certificate's body.
        compared: the fields that were recomputed, in words.
        unchecked: the fields that cannot be recomputed, as written.
    """

    verdict: Verdict
    body: dict[str, Any]
    compared: tuple[str, ...]
    unchecked: dict[str, Any]


def check_certificate(
    document: Mapping[str, Any],
    source: Program,
    result: Program,
    budget: float = CHECKING,
    seed: int | None = None,
) -> Verdict:
    """Check a certificate of programs in memory again.

    Args:
        seed: repeats the random draws of an earlier check that printed it; None draws fresh ones.

    Raises:
        UserError: it is not a certificate or was changed, a program is not the certified one, or
            the comparison gives another verdict.
    """
    body = _intact(document, "certificate")
    for role, program in (("source", source), ("result", result)):
        if body[role]["files"] != _in_memory(role, program)["files"]:
            raise UserError(f"this is not the {role} that was certified")
    return _as_certified(body, source, result, budget, seed, "certificate").verdict


def recheck(path: Path, budget: float | None = None, seed: int | None = None) -> Checked:
    """Check a certificate again from its source and result.

    Nothing in the certificate influences the check: its seed and limits are not used.

    Args:
        budget: seconds for the comparison; None for `CHECKING`.
        seed: repeats the random draws of an earlier check that printed it; None draws fresh ones.

    Raises:
        UserError: it is not a certificate, it or a file was changed, the comparison gives
            another verdict than the certified one, or a recomputed field differs.
    """
    document = _document_at(path)
    body = document["body"]
    folder = path.resolve().parent
    models = [_named(body[role], folder) for role in ("source", "result")]
    for role, model in zip(("source", "result"), models, strict=True):
        _check_files(role, body[role]["files"], model, folder)
    before, after = (model.load() for model in models)
    if models[0].name.startswith(ZOO):
        _check_files("source", body["source"]["files"], models[0], folder, before)
    budget = CHECKING if budget is None else budget
    checked = _as_certified(body, before, after, budget, seed, str(path))
    checked.unchecked["made"] = document["made"]
    return checked


def _as_certified(
    body: dict[str, Any],
    before: Program,
    after: Program,
    budget: float,
    seed: int | None,
    where: str,
) -> Checked:
    """Compare again. Raises UserError where the outcome differs from the certified one."""
    check_comparable(before, after)
    seed = fresh_seed() if seed is None else seed
    verdict = compare(as_lowered(before, body.get("precision")), after, seed=seed, budget=budget)
    stated = body["verdict"]
    if verdict.kind != stated["kind"]:
        raise UserError(
            "the programs do not compare as certified",
            where=where,
            expected=stated["kind"],
            found=without_time(verdict),
        )
    return Checked(verdict, body, *_fields(body, before, after, verdict, where))


def _fields(
    body: Mapping[str, Any], before: Program, after: Program, verdict: Verdict, where: str
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Names of the fields that were recomputed, and of the others.

    Raises:
        UserError: a recomputed field differs.
    """
    found, stated = verdict.as_json(), body["verdict"]
    _require("assumptions", stated["assumptions"], found["assumptions"], where)
    made, said = ([(c["name"], c["expression"]) for c in v["folded"]] for v in (found, stated))
    _require("folded constants", said, made, where)
    most = max((_ulps(c) for c in stated["folded"]), default=0.0)
    if verdict.largest_ulps > most + 1.0:  # another BLAS may round the expression otherwise
        _require("distance of the folded constants, in ulp", most, verdict.largest_ulps, where)
    compared = ["kind", "assumptions", "folded"]
    unchecked: dict[str, Any] = {}
    before_, after_ = pipeline_of(before.module), pipeline_of(after.module)
    own = after_.removeprefix(f"{before_}," if before_ else "")
    if after_ and after_ != before_:
        if body["pipeline"] not in (after_, own):
            _require("pipeline", body["pipeline"], own, where)
        compared.append("pipeline")
    else:
        unchecked["pipeline"] = body["pipeline"]
    listed = {rewrite["rule"] for rewrite in body["rewrites"]}
    named = _rules(after) - _rules(before)
    # "derive match" and "pass/Pattern" are matched by their parts.
    known = {word for rule in listed for word in (rule, *re.split("[ /]", rule))}
    if named and not named & known:
        _require("rewrites", sorted(listed), f"{sorted(named)} in the result", where)
    unchecked["rewrites"] = f"{len(body['rewrites'])}, by {len(listed)} rules"
    if others := sorted(named - known):
        unchecked["rewrites"] += f"; the result names {', '.join(others)} besides"
    unchecked |= {key: body[key] for key in ("seed", "tolerance", "versions")}
    unchecked["verdict"] = {
        key: value for key, value in stated.items() if key not in ("kind", "assumptions", "folded")
    }
    return tuple(compared), unchecked


def _require(what: str, stated: Any, found: Any, where: str) -> None:
    """Raise UserError where a field differs from what was recomputed."""
    if stated != found:
        message = f"the certificate states other {what} than are found again"
        raise UserError(message, where=where, expected=stated, found=found)


def _ulps(constant: Mapping[str, Any]) -> float:
    return float(constant["ulps"])


def _rules(program: Program) -> set[str]:
    """The rules that made ops of a program, as the ops' attributes name them."""
    return {rule for op in program.module.walk() for rule in provenance(op)}


def read_certificate(path: Path) -> dict[str, Any]:
    """The body of an unchanged certificate.

    Raises:
        UserError: it is not a certificate, or its body was changed.
    """
    body: dict[str, Any] = _document_at(path)["body"]
    return body


def _document_at(path: Path) -> dict[str, Any]:
    """A whole certificate. Raises UserError where its body was changed."""
    try:
        document: dict[str, Any] = json.loads(read_whole(path))
    except (ValueError, RecursionError) as error:
        raise UserError("this is not JSON", where=str(path)) from error
    _intact(document, str(path))
    return document


def _intact(document: Any, where: str) -> dict[str, Any]:
    """The body. Raises UserError where the document is not a certificate or was changed."""
    if (fault := first_fault(document, SCHEMA)) is not None:
        raise UserError(f"this is not a certificate: {fault}", where=where)
    if body_hash(document["body"]) != document["body_sha256"]:
        raise UserError("the certificate was changed after it was written", where=where)
    body: dict[str, Any] = document["body"]
    return body


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
        name, files = model.name, [_built(model.name, program)]
    else:
        name = _relative(Path(model.name), folder)
        files = [_file(path, folder) for path in files_of(Path(model.name))]
    return {
        "name": name,
        "batch": model.batch,
        "seed": model.seed,
        "shapes": shapes,
        "files": files,
    }


def _in_memory(role: str, program: Program) -> dict[str, Any]:
    """The identity of a program without a file: hashes of its text and weights (zoo models)."""
    name = f"{MEMORY}{role}"
    return {"name": name, "batch": 1, "seed": 0, "shapes": {}, "files": [_built(name, program)]}


def _named(entry: Mapping[str, Any], folder: Path) -> NamedModel:
    name = entry["name"]
    if name.startswith(MEMORY):
        hint = "isoform.check_certificate(certificate, source, result)"
        raise UserError("this certificate is of programs in memory", hint=hint)
    name = name if name.startswith(ZOO) else str(folder / name)
    return NamedModel(name, entry["shapes"], entry["batch"], entry["seed"])


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder)).as_posix()


def _file(path: Path, folder: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        size = path.stat().st_size
    except OSError as error:
        raise cannot("read", path, error) from error
    return {"name": _relative(path, folder), "bytes": size, "sha256": digest}


def _built(name: str, program: Program) -> dict[str, Any]:
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


def _check_files(
    role: str,
    entries: Sequence[Mapping[str, Any]],
    model: NamedModel,
    folder: Path,
    program: Program | None = None,
) -> None:
    """Compare hashes of files, or of a built model.

    Raises:
        UserError: one was changed.
    """
    for entry in entries:
        if not model.name.startswith(ZOO):
            found = _file(folder / entry["name"], folder)
        elif program is not None:
            found = _built(model.name, program)
        else:
            continue
        if found["sha256"] != entry["sha256"]:
            raise UserError(
                f"this file of the {role} was changed after the certificate was written",
                where=entry["name"],
                expected=f"sha256 {entry['sha256'][:16]}...",
                found=f"{found['sha256'][:16]}...",
            )
    if not model.name.startswith(ZOO):
        listed, there = [e["name"] for e in entries], files_of(Path(model.name))
        names = [_relative(path, folder) for path in there]
        if names != listed:
            raise UserError(f"the {role} has other files now", expected=listed, found=names)


__all__ = [
    "CertifiedWork",
    "Checked",
    "NamedModel",
    "body_hash",
    "certify",
    "files_of",
    "read_certificate",
    "recheck",
]
