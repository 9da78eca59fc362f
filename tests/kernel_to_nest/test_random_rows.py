"""Random kernels of rows compute what their scopes mean, whichever schedule runs them."""

from collections import Counter

import pytest
from support.random_rows import random_rows

from isoform.compiler.frontends.program_file import parse
from isoform.compiler.targets.levels import place
from isoform.lowering.kernel_to_cpu import code_cache
from isoform.lowering.kernel_to_cpu.isa import runnable
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.kernel_to_nest import rows, rows_across
from isoform.testing.random_programs import Agreement, random_inputs

SEEDS = 60


def _differs(seed: int) -> bool:
    program = parse(random_rows(seed))
    inputs, isas = random_inputs(program, seed), runnable()
    session = CpuSession(place(program), 1 + seed % 2, isa=isas[seed % len(isas)])
    found = session.run(inputs)
    session.close()
    return Agreement.of(program, inputs).difference(found) is not None


def test_random_rows_compute_what_they_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache, "OURS", ())  # each kernel is generated here
    ways = Counter[str]()

    def noted(module: object, name: str) -> None:
        chosen = getattr(module, name)

        def choose(*args: object) -> object:
            made = chosen(*args)
            ways[f"{name}: {bool(made)}"] += 1
            return made

        monkeypatch.setattr(module, name, choose)

    noted(rows, "can_be_held")
    noted(rows_across, "rolled")
    assert [seed for seed in range(SEEDS) if _differs(seed)] == []
    assert min(ways.values()) >= 3 and len(ways) == 4, ways
