"""Check a certificate again from its source and result: `isoform verify CERTIFICATE.json`.

Nothing in the certificate influences the check; certificate.py writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...dialects.errors import UserError
from ...dialects.files import read_whole
from ...dialects.program import Program, pipeline_of, provenance
from ...passes.equivalence import Verdict, fresh_seed
from ...passes.verify_equivalence import without_time
from .certificate import (
    MEMORY,
    ZOO,
    NamedModel,
    body_hash,
    built_entry,
    file_entry,
    files_of,
    memory_entry,
    relative_name,
)
from .certificate_schema import SCHEMA
from .comparison import as_written, compared
from .json_schema import first_fault

# Default number of seconds for checking a certificate again.
CHECKING = 600.0


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
        if body[role]["files"] != memory_entry(role, program)["files"]:
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
    seed = fresh_seed() if seed is None else seed
    precision = body.get("precision")
    verdict = compared(before, after, seed=seed, budget=budget, precision=precision)
    stated = body["verdict"]
    if verdict.kind != stated["kind"]:
        raise UserError(
            "the programs do not compare as certified",
            where=where,
            expected=stated["kind"],
            found=without_time(verdict),
        )
    programs = as_written(before), as_written(after)
    return Checked(verdict, body, *_fields(body, *programs, verdict, where))


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
    fields = ["kind", "assumptions", "folded"]
    if verdict.sizes is not None or "sizes" in stated:
        said, made = (_sizes(v) for v in (stated, found))
        _require("sizes", said, made, where)
        fields.append("sizes")
    unchecked: dict[str, Any] = {}
    before_, after_ = pipeline_of(before.module), pipeline_of(after.module)
    own = after_.removeprefix(f"{before_}," if before_ else "")
    if after_ and after_ != before_:
        if body["pipeline"] not in (after_, own):
            _require("pipeline", body["pipeline"], own, where)
        fields.append("pipeline")
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
    unchecked["verdict"] = {key: value for key, value in stated.items() if key not in fields}
    return tuple(fields), unchecked


def _sizes(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """For which sizes a verdict holds: the symbols and the guards; how it was shown may vary."""
    sizes: Mapping[str, Any] = verdict.get("sizes", {})
    return {key: sizes.get(key) for key in ("symbols", "guards")}


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


def _named(entry: Mapping[str, Any], folder: Path) -> NamedModel:
    name = entry["name"]
    if name.startswith(MEMORY):
        hint = "isoform.check_certificate(certificate, source, result)"
        raise UserError("this certificate is of programs in memory", hint=hint)
    name = name if name.startswith(ZOO) else str(folder / name)
    return NamedModel(name, entry["shapes"], entry["batch"], entry["seed"])


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
            found = file_entry(folder / entry["name"], folder)
        elif program is not None:
            found = built_entry(model.name, program)
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
        names = [relative_name(path, folder) for path in there]
        if names != listed:
            raise UserError(f"the {role} has other files now", expected=listed, found=names)


__all__ = ["Checked", "check_certificate", "read_certificate", "recheck"]
