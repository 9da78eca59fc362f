"""Where a compiled program's time goes: a table by kernel, and a trace for Chrome or Perfetto."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from ...dialects.files import write_whole

# Rows that the table shows of a long program.
SHOWN = 20


@dataclass(frozen=True)
class KernelTime:
    """One kernel, or one op that runs on the host.

    Units: `seconds` is the median over the rounds, on the session's threads.
    """

    place: str  # the op in the source's words
    kernel: str  # its symbol, or `host`
    seconds: float


@dataclass(frozen=True)
class Profile:
    """The kernels of one program in execution order, each measured in `rounds` runs.

    Each kernel is a call of its own, so the sum is a few microseconds a kernel above what a run
    takes.
    """

    kernels: tuple[KernelTime, ...]
    rounds: int
    threads: int

    @staticmethod
    def of(
        labels: Sequence[tuple[str, str]], seconds: Sequence[Sequence[float]], threads: int
    ) -> Profile:
        """Sum up the rounds of each kernel."""
        rows = zip(labels, seconds, strict=True)
        kernels = tuple(KernelTime(place, kernel, median(s)) for (place, kernel), s in rows)
        return Profile(kernels, len(seconds[0]) if seconds else 0, threads)

    @property
    def seconds(self) -> float:
        """Seconds of all kernels together."""
        return sum(kernel.seconds for kernel in self.kernels)

    def rows(self, most: int = SHOWN) -> list[tuple[str, str, float, float]]:
        """The slowest kernels: place, kernel, milliseconds, share of the whole."""
        slowest = sorted(self.kernels, key=lambda kernel: -kernel.seconds)[:most]
        whole = self.seconds or 1.0
        return [(k.place, k.kernel, 1e3 * k.seconds, k.seconds / whole) for k in slowest]

    def table(self, most: int = SHOWN) -> str:
        """The slowest kernels as text, and the sum."""
        rows = [(p, f"{ms:.4f}", f"{100 * share:.1f}%", k) for p, k, ms, share in self.rows(most)]
        lines = [("op", "ms", "share", "kernel"), *rows, (self._summary(), "", "", "")]
        widths = [max(len(line[k]) for line in lines[:-1]) for k in range(4)]
        text = (
            "  ".join(c.rjust(w) if k in (1, 2) else c.ljust(w) for k, (c, w) in cells).rstrip()
            for cells in (enumerate(zip(line, widths, strict=True)) for line in lines)
        )
        return "\n".join(text)

    def trace(self) -> dict[str, Any]:
        """The kernels one after the other, in Chrome's trace format (chrome://tracing, Perfetto).

        Units: `ts` and `dur` are microseconds.
        """
        events: list[dict[str, Any]] = []
        start = 0.0
        for kernel in self.kernels:
            length = 1e6 * kernel.seconds
            event = {"name": kernel.place, "cat": kernel.kernel, "ph": "X", "ts": start}
            events.append({**event, "dur": length, "pid": 1, "tid": 1})
            start += length
        return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"by": "isoform"}}

    def save(self, path: str | Path) -> None:
        """Write the trace. Raises UserError where the file cannot be written."""
        write_whole(path, json.dumps(self.trace()) + "\n")

    def _summary(self) -> str:
        count = len(self.kernels)
        return f"{count} kernels, {1e3 * self.seconds:.4f} ms, {self.threads} thread(s)"

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(p)}</td><td>{ms:.4f}</td><td>{100 * share:.1f}%</td>"
            f"<td>{escape(k)}</td></tr>"
            for p, k, ms, share in self.rows()
        )
        head = "<tr><th>op</th><th>ms</th><th>share</th><th>kernel</th></tr>"
        return f"<table>{head}{rows}</table><p>{escape(self._summary())}</p>"
