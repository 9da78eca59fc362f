"""How much memory a compiled program takes: the arena's plan, and the process as a whole."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import isoform
from isoform.compiler import zoo
from isoform.compiler.targets.levels import place
from isoform.passes.plan_memory import ARENA, largest_live_set, lifetimes

PROBE = Path(__file__).with_name("memory_probe.py")
LARGE = {"gcn", "longformer", "nasnet-a", "resnet3d18"}
NAMES = [
    pytest.param(m.name, marks=pytest.mark.slow) if m.name in LARGE else m.name for m in zoo.MODELS
]
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="resident memory is read from /proc"
)


@pytest.mark.parametrize("name", NAMES)
def test_the_arena_is_close_to_the_largest_live_set(name: str) -> None:
    module = place(zoo.build(name)).module
    arena = module.attributes[ARENA].value.data
    live = largest_live_set(lifetimes(module))
    print(f"{name}: arena {arena} bytes, {arena / live:.3f} of the largest live set")
    assert live <= arena <= 1.3 * live


def _probe(model: str) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, str(PROBE), model], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(model, {key: f"{value / 2**20:.0f} MiB" for key, value in found.items()})
    return found


def _allowed(found: dict[str, int]) -> float:
    return 1.1 * (found["packed"] + found["arena"]) + (64 << 20)


@needs_proc
@pytest.mark.parametrize("name", ["resnet50", "bert-base"])
def test_a_process_grows_by_the_packed_weights_and_the_arena(name: str) -> None:
    found = _probe(f"zoo:{name}")
    assert found["growth"] <= _allowed(found)


@needs_proc
@pytest.mark.parametrize("suffix", [".onnx", ".mlir"])
def test_neither_do_files_stand_in_memory_twice(suffix: str, tmp_path: Path) -> None:
    """A memory-mapped file counts as resident while the system has no better use for its pages."""
    path = tmp_path / f"model{suffix}"
    isoform.save(isoform.load("zoo:resnet50"), path)
    found = _probe(str(path))
    assert found["anonymous"] <= _allowed(found)
