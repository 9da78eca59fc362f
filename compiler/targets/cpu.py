"""Compile programs for the CPU; programs compiled before come from the cache folder.

The key of a stored program covers everything it depends on: its text, its weights, the options, the
instruction set, and this package's files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import llvmlite
from xdsl.printer import Printer

from ...dialects.cache_folder import tuned_file
from ...dialects.deadline import check_time
from ...dialects.floats import VALUES
from ...dialects.program import Program
from ...lowering.kernel_to_cpu.isa import Isa
from ...lowering.kernel_to_cpu.program_store import ProgramStore
from ..frontends.program_file import check_weights, used_weights
from .cpu_options import CpuOptions
from .levels import place
from .session import Runner


def compile_cpu(program: Program, options: CpuOptions) -> Runner:
    """Load the program from the cache folder, or lower, tune, link and store it.

    Raises:
        UserError: weights are missing or do not fit, an op has no CPU code, a cost file is broken.
    """
    store = ProgramStore()
    key = None
    if options.cost_file is None and store.folder.usable:
        _check_weights_at_hand(program)
        key = program_key(program, options)
        found = store.load(key, options.threads)
        if found is not None:
            return found
    check_weights(program)
    from ...lowering.kernel_to_cpu.session import CpuSession

    placed = place(program, options)
    session = CpuSession(placed, options.threads)
    session.notes = algorithms(placed)
    if options.floats.fast_math:
        session.notes.append(reassociated())
    if key is not None:
        store.save(key, session, session.notes)
    return session


def _check_weights_at_hand(program: Program) -> None:
    for name in used_weights(program.module):
        if name not in program.weights:
            program.weights[name]  # raises, and suggests the closest name


def algorithms(program: Program) -> list[dict[str, Any]]:
    """The algorithms that `tune` chose instead of the direct one: rule, place, gain and error."""
    from ...passes.tuning.note import note_of

    found = [note_of(op) for op in program.main.body.block.ops]
    return [note for note in found if note is not None]


def reassociated() -> dict[str, Any]:
    """What `--fast-math` does to kernels, as an entry of a report."""
    return {
        "rule": "fast-math",
        "place": "main",
        "proof": "exact",
        "delta": 0.0,
        "error": None,
        **VALUES.entry(),
    }


# --- keys ---------------------------------------------------------------------------------------


def program_key(program: Program, options: CpuOptions) -> str:
    """The name under which a compiled program is stored."""
    digest = hashlib.sha256()
    for part in (*compiler_key(options), _text(program), *identities(program)):
        digest.update(f"{part}\0".encode())
    return digest.hexdigest()


def compiler_key(options: CpuOptions) -> tuple[str, ...]:
    """What beside the program a compiled one depends on."""
    tuned = _state_of(tuned_file()) if options.uses_tuned else ""
    return options.key, repr(Isa.host()), llvmlite.__version__, _package_state(), tuned


def _state_of(path: Path | None) -> str:
    """Size and time of a file; nothing if there is none."""
    try:
        status = None if path is None else path.stat()
    except OSError:
        status = None
    return "" if status is None else f"{status.st_size} {status.st_mtime_ns}"


def identities(program: Program) -> list[str]:
    """A key of the content of each weight that a program uses; of absent ones the name."""
    found: list[str] = []
    for name in used_weights(program.module):
        check_time()
        here = name in program.weights
        found.append(program.weights.identity(name) if here else f"absent {name}")
    return found


def _text(program: Program) -> str:
    out = StringIO()
    Printer(out).print_op(program.module)
    return out.getvalue()


def _package_state() -> str:
    """The installed version where that is a copy, otherwise size and time of each source file.

    A checkout changes without changing its version; code compiled by an older one must not be used.
    """
    root = Path(__file__).resolve().parents[2]
    found: list[str] = []
    for folder in ("compiler", "dialects", "lowering", "passes"):
        found += sorted(_files(root / folder))
    return "\n".join(found)


def _files(folder: Path) -> Sequence[str]:
    """Path, size and time of the sources in and below a folder; none if it does not exist."""
    found: list[str] = []
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return found
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            found += _files(Path(entry.path))
        elif entry.name.endswith((".py", ".rules")):
            status = entry.stat()
            found.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
    return found
