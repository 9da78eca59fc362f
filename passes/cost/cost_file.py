"""Cost files: measured times of ops on one target, as JSON (docs/costs.md has the schema)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...dialects.errors import UserError
from ...dialects.files import read_json, write_whole
from ...dialects.signature import key, signature

SCHEMA = 1


@dataclass(frozen=True)
class Measured:
    """One measured op. Units: microseconds; `p10` and `p90` are percentiles, `us` the median.

    `tune` also stores the direct algorithm's time, and the relative error of the chosen one. A
    tuned kernel has the schedule that is used (empty: the generator's own), and all that were
    measured: the seconds of each, over those of the generator's; None is one that gave no result.
    """

    signature: str  # of the op (signature.py)
    us: float
    p10: float
    p90: float
    algorithm: str = ""
    direct_us: float | None = None  # the direct algorithm
    error: float | None = None  # relative
    schedule: str | None = None
    trials: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])

    def as_json(self) -> dict[str, Any]:
        """The entry as the file stores it."""
        entry: dict[str, Any] = {
            "signature": self.signature,
            "us": self.us,
            "p10": self.p10,
            "p90": self.p90,
            "algo": self.algorithm,
        }
        if self.direct_us is not None:
            entry["direct_us"] = self.direct_us
        if self.error is not None:
            entry["error"] = self.error
        if self.schedule is not None:
            entry["schedule"] = self.schedule
            entry["trials"] = dict(sorted(self.trials.items()))
        return entry

    def joined(self, other: Measured) -> Measured:
        """The measurements of both; of two tuned schedules the one that gains more is used."""
        if self.schedule is None or other.schedule is None:
            return other
        best = min(other, self, key=lambda e: (not e.algorithm, e.us / (e.direct_us or e.us)))
        return replace(best, trials={**self.trials, **other.trials})


@dataclass
class CostFile:
    """The contents of one cost file; `class_scale` multiplies the model, by class of op."""

    target: str
    env: dict[str, Any] = field(default_factory=dict[str, Any])
    class_scale: dict[str, float] = field(default_factory=dict[str, float])
    ops: dict[str, Measured] = field(default_factory=dict[str, Measured])

    def add(self, entry: Measured) -> None:
        """Store an entry under its content address; it replaces an older one."""
        self.ops[key(entry.signature)] = entry

    def merge(self, other: CostFile) -> None:
        """Add the entries of a file for the same target; the other's win, tuned ones are joined.

        Raises:
            UserError: the targets differ.
        """
        if other.target != self.target:
            raise UserError("cost files of two targets", expected=self.target, found=other.target)
        for address, entry in other.ops.items():
            before = self.ops.get(address)
            self.ops[address] = entry if before is None else before.joined(entry)
        self.class_scale |= other.class_scale
        self.env |= other.env

    @property
    def digest(self) -> str:
        """A hash of everything that costs depend on: equal digests price every op alike."""
        ops = {k: entry.as_json() for k, entry in self.ops.items()}
        text = json.dumps([self.class_scale, ops], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the file, entries sorted by key."""
        content = {
            "schema": SCHEMA,
            "target": self.target,
            "env": self.env,
            "class_scale": self.class_scale,
            "ops": {k: self.ops[k].as_json() for k in sorted(self.ops)},
        }
        write_whole(path, json.dumps(content, indent=2) + "\n")


def load_cost_file(path: str | Path) -> CostFile:
    """Read a cost file.

    Raises:
        UserError: it cannot be read, is not a cost file, or has an invalid time.
    """
    where = str(path)
    content = read_json(path)
    if not isinstance(content, dict) or "target" not in content or "ops" not in content:
        raise UserError("this is not a cost file: 'target' and 'ops' are needed", where=where)
    if content.get("schema") != SCHEMA:
        found = content.get("schema")
        raise UserError("another version of cost files", where=where, expected=SCHEMA, found=found)
    scale = {str(name): _positive(v, where) for name, v in _mapping(content, "class_scale", where)}
    ops = {str(k): _entry(v, where) for k, v in _mapping(content, "ops", where)}
    for address, entry in ops.items():
        if key(entry.signature) != address:
            raise UserError(f"entry {address} is not the address of its signature", where=where)
    env = content.get("env", {})
    return CostFile(str(content["target"]), env if isinstance(env, dict) else {}, scale, ops)


def _mapping(content: Mapping[str, Any], name: str, where: str) -> list[tuple[Any, Any]]:
    value = content.get(name, {})
    if not isinstance(value, dict):
        raise UserError(f"'{name}' is an object", where=where, found=type(value).__name__)
    return list(value.items())


def _entry(value: object, where: str) -> Measured:
    if not isinstance(value, dict) or "us" not in value or "signature" not in value:
        raise UserError("an entry needs 'us' and 'signature'", where=where)
    us = _positive(value["us"], where)
    p10, p90 = (_positive(value.get(name, us), where) for name in ("p10", "p90"))
    direct = None if "direct_us" not in value else _positive(value["direct_us"], where)
    error = value.get("error")
    if error is not None and not (isinstance(error, (int, float)) and error >= 0):
        raise UserError("an error is a number from 0 up", where=where, found=error)
    algorithm = str(value.get("algo", ""))
    schedule, trials = value.get("schedule"), value.get("trials", {})
    if not (schedule is None or isinstance(schedule, str)) or not isinstance(trials, dict):
        raise UserError("a tuned entry has a 'schedule' and its 'trials'", where=where)
    ratios = {str(k): None if r is None else _positive(r, where) for k, r in trials.items()}
    measured = us, p10, p90, algorithm, direct, error
    return Measured(str(value["signature"]), *measured, schedule, ratios)


def _positive(value: object, where: str) -> float:
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
    if math.isfinite(number) and number > 0:
        return float(number)
    raise UserError("a positive number is needed", where=where, found=value)


def entry_for(op: Any, us: float, p10: float, p90: float, algorithm: str = "") -> Measured:
    """The entry of a measured op."""
    return Measured(signature(op), us, p10, p90, algorithm)
