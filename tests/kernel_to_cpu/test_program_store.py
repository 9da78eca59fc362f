"""Stored programs: the same results as when compiled, and nothing where the file is not whole."""

from pathlib import Path

import numpy as np
import pytest

import isoform
from isoform.compiler.targets import cpu
from isoform.compiler.targets.cpu import compile_cpu, program_key
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.program_store import StoredSession
from isoform.lowering.kernel_to_cpu.session import CpuSession


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cpu, "_package_state", lambda: "frozen")  # nobody edits it meanwhile
    return tmp_path / "cache"


def network(scale: float = 1.0, *, names: str = "w") -> Program:
    """A padded convolution, a residual, an input that is an output too, a constant output."""
    rng = np.random.default_rng(0)
    b = isoform.GraphBuilder()
    x = b.input("x", (2, 4, 7, 9))
    w = b.weight(names, (scale * rng.standard_normal((4, 4, 3, 3))).astype(np.float32))
    y = b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
    z = b.relu(b.add(y, x))
    b.output("z", z)
    b.output("same", x)
    b.output("swapped", b.transpose(z, perm=[0, 2, 3, 1]))
    b.output("constant", b.exp(b.constant(np.arange(3, dtype=np.float32))))
    return b.build()


def feeds(seed: int = 0) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((2, 4, 7, 9)).astype(np.float32)}


PACKAGE_STATE = cpu._package_state
OPTIONS = CpuOptions(threads=2, effort="quick")


def files(folder: Path) -> list[Path]:
    return list(folder.glob("*.program"))


def test_the_second_compilation_is_loaded_and_computes_the_same():
    program = network()
    first, second = compile_cpu(program, OPTIONS), compile_cpu(program, OPTIONS)
    assert isinstance(first, CpuSession)
    assert isinstance(second, StoredSession)
    for seed in range(3):
        wanted, found = first.run(feeds(seed)), second.run(feeds(seed))
        assert list(wanted) == list(found)
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array)
    assert second.native_calls == 3
    assert second.arena_bytes == first.arena_bytes
    assert second.packed_bytes == first.packed_bytes


@pytest.mark.parametrize("place", [0, 10, 15, 40, 0.3, 0.6, -70, -1])
def test_a_file_with_one_wrong_byte_is_not_used(cache, place):
    program = network()
    compile_cpu(program, OPTIONS)
    (file,) = files(cache)
    content = bytearray(file.read_bytes())
    content[int(place * len(content)) if isinstance(place, float) else place] ^= 1
    file.write_bytes(bytes(content))
    assert isinstance(compile_cpu(program, OPTIONS), CpuSession)
    assert isinstance(compile_cpu(program, OPTIONS), StoredSession)


def test_other_weights_options_or_code_are_other_programs(monkeypatch):
    key = program_key(network(), OPTIONS)
    assert program_key(network(), OPTIONS) == key
    assert program_key(network(2.0), OPTIONS) != key
    assert program_key(network(), CpuOptions(threads=1, effort="quick")) == key
    assert program_key(network(), CpuOptions(threads=2, effort="max")) != key
    assert program_key(network(), CpuOptions(threads=2, effort="quick", tolerance=0)) != key
    monkeypatch.setattr(cpu, "_package_state", lambda: "changed")
    assert program_key(network(), OPTIONS) != key


def test_the_state_of_the_package_names_each_source_file():
    state = PACKAGE_STATE()
    assert "program_store.py" in state
    assert "cpu.py" in state


def test_a_weight_made_of_others_is_known_by_how_it_is_made():
    from isoform.compiler.api import improve

    def folded(scale: float) -> Program:
        b = isoform.GraphBuilder()
        x = b.input("x", (1, 4))
        w = b.weight("w", np.full((4, 100), scale, np.float32))
        b.output("y", b.matmul(x, b.exp(w)))
        return improve(b.build())

    first, second, other = folded(1.0), folded(1.0), folded(2.0)
    (name,) = [name for name in first.weights if first.weights.is_made(name)]
    assert first.weights.identity(name) == second.weights.identity(name)
    assert first.weights.identity(name) != other.weights.identity(name)
    assert program_key(first, OPTIONS) != program_key(other, OPTIONS)


def test_a_program_beyond_its_share_is_not_stored(cache, monkeypatch):
    monkeypatch.setenv("ISOFORM_CACHE_LIMIT", "1")
    b = isoform.GraphBuilder()
    x = b.input("x", (1, 300))
    b.output("y", b.matmul(x, b.weight("w", np.ones((300, 300), np.float32))))
    compile_cpu(b.build(), OPTIONS)
    assert files(cache) == []


def test_a_cost_file_decides_anew(cache, tmp_path):
    options = CpuOptions(threads=1, cost_file=str(tmp_path / "costs.json"))
    for _ in range(2):
        assert isinstance(compile_cpu(network(), options), CpuSession)
    assert files(cache) == []


def test_a_missing_weight_is_an_error_also_when_the_program_is_stored():
    program = network()
    compile_cpu(program, OPTIONS)
    program.weights = type(program.weights)()
    with pytest.raises(isoform.UserError, match="'w' is not in the weights file"):
        compile_cpu(program, OPTIONS)


def test_what_the_compiler_chose_is_kept(monkeypatch):
    chosen = [{"rule": "winograd-f2", "place": "main", "delta": -1.0, "error": 0.0}]
    monkeypatch.setattr(cpu, "algorithms", lambda _: chosen)
    program = network()
    first = isoform.compile(program, threads=1)
    second = isoform.compile(program, threads=1)
    assert isinstance(second.runner, StoredSession)
    assert first.algorithms == second.algorithms == chosen


@pytest.mark.parametrize(("effort", "tolerance"), [("much", 0.0), ("quick", -1.0)])
def test_wrong_options_are_errors(effort, tolerance):
    with pytest.raises(isoform.UserError):
        CpuOptions(threads=1, effort=effort, tolerance=tolerance)
