"""Run by test_memory in a fresh process: load a model, compile it, run it ten times, print figures.

Resident bytes are of the whole process; `anonymous` leaves out pages of mapped files, which the
system may drop at any time.
"""

import json
import sys
from pathlib import Path

import isoform
from isoform.compiler.commands.inputs import draw_inputs


def resident(field: str) -> int:
    """Bytes of a field of /proc/self/status, given there in kB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) << 10
    raise RuntimeError(f"the system does not tell {field}")


def main(model: str) -> None:
    program = isoform.load(model)
    loaded = {name: resident(name) for name in ("VmRSS", "RssAnon")}
    session = isoform.compile(program, threads=2)
    feeds = draw_inputs(program)
    for _ in range(10):
        session.run(None, feeds)
    growth = {name: resident(name) - before for name, before in loaded.items()}
    runner = session.runner
    print(
        json.dumps(
            {
                "growth": growth["VmRSS"],
                "anonymous": growth["RssAnon"],
                "packed": runner.packed_bytes,
                "arena": runner.arena_bytes,
                "peak": resident("VmHWM"),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
