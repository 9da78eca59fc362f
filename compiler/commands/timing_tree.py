"""Where the seconds went, as the tree that mlir-opt's `--mlir-timing` prints."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..pass_manager import PassRun, anchor_of
from ..pipeline_text import MODULE

_RULE = f"===-{'-' * 73}-==="
_TITLE = "... Execution time report ..."


@dataclass
class TimingTree:
    """Seconds by part; passes stand under the op they run on, `Rest` is what nobody claims."""

    started: float = field(default_factory=time.perf_counter)
    parts: dict[str, float] = field(default_factory=dict[str, float])
    runs: list[PassRun] = field(default_factory=list[PassRun])

    @contextmanager
    def part(self, name: str) -> Generator[None]:
        """Add the seconds of the block to a part."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.parts[name] = self.parts.get(name, 0.0) + time.perf_counter() - started

    def text(self) -> str:
        """The report, in wall-clock seconds."""
        total = time.perf_counter() - self.started
        lines = [_RULE, _TITLE.center(len(_RULE)).rstrip(), _RULE]
        lines += [f"  Total Execution Time: {total:.4f} seconds", ""]
        lines.append("  ----Wall Time----  ----Name----")
        rows = self._rows(total)
        lines += [f"  {s:8.4f} ({100 * s / total:5.1f}%)  {name}" for s, name in rows]
        return "\n".join(lines)

    def _rows(self, total: float) -> list[tuple[float, str]]:
        rows: list[tuple[float, str]] = []
        for name, seconds in self.parts.items():
            rows.append((seconds, name))
            if name == PIPELINE:
                inside = self._passes()
                used = sum(s for s, name in inside if not name.startswith("    "))
                rows += [*inside, (max(0.0, seconds - used), "  (V) Verifier and reports")]
        rows.append((max(0.0, total - sum(self.parts.values())), "Rest"))
        return [*rows, (total, "Total")]

    def _passes(self) -> list[tuple[float, str]]:
        """Passes on the module, and groups of passes on its functions with their sums."""
        rows: list[tuple[float, str]] = []
        group: list[PassRun] = []
        for run in [*self.runs, None]:
            if run is not None and anchor_of(run.pass_) != MODULE:
                group.append(run)
                continue
            if group:
                rows.append((sum(r.seconds for r in group), "  'func.func' Pipeline"))
                rows += [(r.seconds, f"    {r.name}") for r in group]
                group = []
            if run is not None:
                rows.append((run.seconds, f"  {run.name}"))
        return rows


PIPELINE = "'builtin.module' Pipeline"
