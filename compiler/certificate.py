"""Certificates: what was done to a program, and that the result is the same program.

A certificate is written once the result is on disk, from the files as they were written. Whoever
has the files can check it again without the search: `isoform verify CERTIFICATE.json`.
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

from .. import __version__
from ..dialects.errors import UserError
from ..dialects.files import cannot, read_whole, write_whole
from ..dialects.program import Program
from ..passes.equivalence import Verdict, compare
from ..passes.same_interface import check_comparable
from ..passes.verify_equivalence import without_time
from . import api
from .certificate_schema import FORMAT, SCHEMA, VERSION
from .json_schema import first_fault
from .program_file import module_text, read_program, used_weights, weights_file

ZOO = "zoo:"


@dataclass(frozen=True)
class Model:
    """A model as a command line names it."""

    name: str
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    batch: int = 1
    seed: int = 0

    def load(self) -> Program:
        """The program. Raises UserError as `api.load`."""
        return api.load(self.name, self.shapes, batch=self.batch, seed=self.seed)


@dataclass(frozen=True)
class Work:
    """What was done.

    Attributes:
        rewrites: `rule`, `place` and `proof` of each; more fields are left out.
        tolerance: relative error that an inexact algorithm may add where the result is compiled.
    """

    pipeline: str
    rewrites: Sequence[Mapping[str, Any]]
    seed: int
    tolerance: float = 0.0


def certify(source: Model, result: Path, work: Work, path: Path, budget: float = 60.0) -> Verdict:
    """Compare the result, as it lies on disk, with its source and write the certificate.

    Raises:
        UserError: the programs differ, so there is nothing to certify; a file cannot be read or
            written.
    """
    folder = path.resolve().parent
    made = Model(str(result))
    before, after = source.load(), made.load()
    check_comparable(before, after)
    verdict = compare(before, after, seed=work.seed, budget=budget)
    if verdict.kind == "different":
        hint = "isoform bisect says which rewrite made it"
        raise UserError(f"no certificate: {without_time(verdict)}", where=str(result), hint=hint)
    body = {
        "format": FORMAT,
        "version": VERSION,
        "source": _model(source, before, folder),
        "result": _model(made, after, folder),
        "pipeline": work.pipeline,
        "rewrites": [{k: r[k] for k in ("rule", "place", "proof")} for r in work.rewrites],
        "verdict": _lasting(verdict),
        "seed": work.seed,
        "tolerance": work.tolerance,
        "versions": versions(),
    }
    document = {
        "body": body,
        "body_sha256": body_hash(body),
        "made": {"date": _now(), "seconds": verdict.seconds},
    }
    write_whole(path, json.dumps(document, indent=1) + "\n")
    return verdict


def recheck(path: Path, budget: float = 60.0) -> tuple[Verdict, dict[str, Any]]:
    """Check a certificate again from its source and result, and return its body.

    Raises:
        UserError: the certificate is none or was changed, or a file was; the comparison gives
            another verdict than the one certified.
    """
    body = read_certificate(path)
    folder = path.resolve().parent
    models = [_named(body[role], folder) for role in ("source", "result")]
    for role, model in zip(("source", "result"), models, strict=True):
        _check_files(role, body[role]["files"], model, folder)
    before, after = (model.load() for model in models)
    if models[0].name.startswith(ZOO):
        _check_files("source", body["source"]["files"], models[0], folder, before)
    check_comparable(before, after)
    verdict = compare(before, after, seed=body["verdict"]["seed"], budget=budget)
    if verdict.kind != body["verdict"]["kind"]:
        raise UserError(
            "the programs do not compare as certified",
            where=str(path),
            expected=body["verdict"]["kind"],
            found=without_time(verdict),
        )
    return verdict, body


def read_certificate(path: Path) -> dict[str, Any]:
    """The body of a certificate that is what was written.

    Raises:
        UserError: it is no certificate, or its body was changed.
    """
    try:
        document = json.loads(read_whole(path))
    except (ValueError, RecursionError) as error:
        raise UserError("this is no JSON", where=str(path)) from error
    if (fault := first_fault(document, SCHEMA)) is not None:
        raise UserError(f"this is no certificate: {fault}", where=str(path))
    if body_hash(document["body"]) != document["body_sha256"]:
        raise UserError("the certificate was changed after it was written", where=str(path))
    body: dict[str, Any] = document["body"]
    return body


def body_hash(body: Mapping[str, Any]) -> str:
    """sha256 of the body as JSON with sorted keys, no spaces, in ASCII."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def versions() -> dict[str, str]:
    """What the verdict may depend on."""
    found = {"isoform": __version__, "python": platform.python_version()}
    for name in ("xdsl", "numpy", "onnx"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def _lasting(verdict: Verdict) -> dict[str, Any]:
    """A verdict without what differs between equal runs."""
    return {key: value for key, value in verdict.as_json().items() if key != "seconds"}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


# --- files --------------------------------------------------------------------------------------


def _model(model: Model, program: Program, folder: Path) -> dict[str, Any]:
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


def _named(entry: Mapping[str, Any], folder: Path) -> Model:
    name = entry["name"]
    name = name if name.startswith(ZOO) else str(folder / name)
    return Model(name, entry["shapes"], entry["batch"], entry["seed"])


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
    """A zoo model has no file: what stands for it is its text and its weights."""
    digest = hashlib.sha256(text := module_text(program.module).encode())
    for key in used_weights(program.module):
        digest.update(f"{key} {program.weights.content_hash(key)}\n".encode())
    return {"name": name, "bytes": len(text), "sha256": digest.hexdigest()}


def files_of(path: Path) -> list[Path]:
    """A model's file, then the files that its weights are in.

    Raises:
        UserError: the model cannot be read.
    """
    if path.suffix.lower() == ".onnx":
        from ..lowering.onnx_to_graph.loading import load_model

        return [path, *_external(load_model(path).proto, path.resolve().parent)]
    side = weights_file(path, read_program(path))
    return [path] if side is None else [path, side]


def _external(proto: Any, folder: Path) -> list[Path]:
    """Files of external data, each once, in order of their names."""
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
    model: Model,
    folder: Path,
    program: Program | None = None,
) -> None:
    """Compare hashes: of the files, or of a built model once it is there.

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


__all__ = ["Model", "Work", "body_hash", "certify", "files_of", "read_certificate", "recheck"]
