"""What is drawn at random cannot be known by whoever wrote the programs, or the certificate."""

import importlib
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support.small_network import MODELLED, Command, network

from isoform.compiler import api
from isoform.compiler.reports import check_certificate as checking
from isoform.compiler.reports import comparison
from isoform.compiler.reports.certificate import body_hash
from isoform.compiler.reports.check_certificate import check_certificate, recheck
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.passes.equivalence import Verdict, compare, prove, residues


def summed(coefficients: list[float]) -> Program:
    """sigmoid(x + z + c1 c2 ... z): no polynomial, so the field check decides."""
    b = GraphBuilder()
    x, z = b.input("x", (4,)), b.input("z", (4,))
    value = b.add(x, z)
    if coefficients:
        factor = z
        for c in coefficients:
            factor = b.mul(factor, b.expand(b.constant(np.float32(c)), (4,)))
        value = b.add(value, factor)
    b.output("y", b.sigmoid(value))
    return b.build()


@pytest.mark.parametrize("seed", [0, 1, 7, 2**40])
def test_no_program_can_be_written_for_the_primes_of_a_seed(seed: int) -> None:
    """Coefficients that are multiples of what a bare seed draws, or would with a known text."""
    primes = {p for n in range(2, 9) for p in residues.draw_primes(n, seed)}
    assert all(Fraction(float(np.float32(p))) == p for p in primes)
    scaled = [float(p) / 2**20 for p in sorted(primes)]
    assert compare(summed([]), summed(scaled), seed=seed).kind == "different"


def test_the_draws_depend_on_both_programs_and_on_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []

    def noting(seed: int, *more: object, **others: object) -> prove.Prover:
        used.append(seed)
        return prove.Prover(seed, *more, **others)  # type: ignore[arg-type]

    module = importlib.import_module("isoform.passes.equivalence.compare")
    monkeypatch.setattr(module, "Prover", noting)
    a, b, c = summed([]), summed([0.5]), summed([0.25])
    for pair, seed in (((a, b), 0), ((a, c), 0), ((b, a), 0), ((c, b), 0), ((a, b), 1)):
        compare(*pair, seed=seed)
    assert len(set(used)) == len(used) == 5
    compare(a, b, seed=0)
    assert used[-1] == used[0]


def test_verify_draws_anew_and_says_how_to_repeat(net: Path, isoform: Command) -> None:
    seeds = {json.loads(isoform("verify", net, net, "--json")[1])["seed"] for _ in range(3)}
    assert len(seeds) == 3
    out = isoform("verify", net, net)[1]
    seed = out.split("random draws: --seed ")[1].split(" repeats")[0]
    again = isoform("verify", net, net, "--seed", seed)[1]
    assert f"random draws: --seed {seed} repeats them" in again


# --- certificates of strangers --------------------------------------------------------------------


@pytest.fixture
def certified(net: Path, tmp_path: Path, isoform: Command) -> Path:
    path = tmp_path / "c.json"
    out = ("-o", tmp_path / "r.mlir", "--certificate", path)
    assert isoform("optimize", net, *out, *MODELLED)[0] == 0
    return path


def forged(path: Path, **changes: object) -> Path:
    """The certificate with other fields (`a__b`: b inside a), its hash made anew."""
    document = json.loads(path.read_text())
    for name, value in changes.items():
        place = document["body"]
        *outer, last = name.split("__")
        for key in outer:
            place = place[key]
        place[last] = value
    document["body_sha256"] = body_hash(document["body"])
    path.write_text(json.dumps(document))
    return path


def test_neither_seed_nor_limit_of_a_certificate_is_believed(
    certified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[int, float]] = []

    def noting(*programs: Program, seed: int, budget: float) -> Verdict:
        given.append((seed, budget))
        return compare(*programs, seed=seed, budget=budget)

    monkeypatch.setattr(comparison, "compare", noting)
    document = json.loads(forged(certified, verdict__seed=99, seed=99).read_text())
    for seconds in (0.001, 1e6):
        document["made"]["seconds"] = seconds
        certified.write_text(json.dumps(document))
        recheck(certified)
    recheck(certified, 7.0, 5)
    assert [budget for _, budget in given] == [checking.CHECKING, checking.CHECKING, 7.0]
    assert given[0][0] != given[1][0]
    assert 99 not in {seed for seed, _ in given}
    assert given[2][0] == 5


FALSE_CLAIMS = {
    "an assumption that is not made": {
        "verdict__assumptions": [{"name": "cancel", "statement": "a / a = 1"}]
    },
    "folded constants left out": {"verdict__folded": []},
    "another pipeline": {"pipeline": "cse"},
    "rewrites left out": {"rewrites": []},
}


@pytest.mark.parametrize("what", FALSE_CLAIMS)
def test_what_can_be_found_again_must_be_as_stated(
    certified: Path, isoform: Command, what: str
) -> None:
    status, out, err = isoform("verify", forged(certified, **FALSE_CLAIMS[what]))
    assert (status, out) == (1, "")
    assert "the certificate states other " in err
    assert err.count("\n") == 1


def test_folded_constants_are_compared_by_expression_and_distance(
    certified: Path, isoform: Command
) -> None:
    folded = json.loads(certified.read_text())["body"]["verdict"]["folded"]
    other = [{**folded[0], "expression": "%w = graph.weight @w : tensor<1xf32>"}, *folded[1:]]
    assert isoform("verify", forged(certified, verdict__folded=other))[0] == 1
    assert isoform("verify", forged(certified, verdict__folded=folded))[0] == 0


def test_a_distance_stated_smaller_than_found_is_refused(
    certified: Path, isoform: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isoform.passes.equivalence.weight_identities.ulps", lambda *_: 3.0)
    status, _, err = isoform("verify", certified)
    assert status == 1
    assert "distance of the folded constants, in ulp" in err


def test_every_field_is_compared_or_marked(certified: Path, isoform: Command) -> None:
    forged(certified, tolerance=0.125, versions={"isoform": "9.9"})
    status, out, _ = isoform("verify", certified)
    assert status == 0
    assert "compared with what the certificate says: kind, assumptions, folded, pipeline" in out
    marked = out.split("as the certificate says, not checked again:\n")[1]
    assert "tolerance: 0.125" in marked
    found = json.loads(isoform("verify", certified, "--json")[1])
    body = json.loads(certified.read_text())["body"]
    covered = {"format", "version", "source", "result", "pipeline", *found["not_checked"]}
    assert set(body) <= covered
    stated = {"kind", "assumptions", "folded", *found["not_checked"]["verdict"]}
    assert set(body["verdict"]) == stated


def test_a_certificate_of_programs_in_memory_draws_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    def noting(*programs: Program, seed: int, budget: float) -> Verdict:
        given.append(seed)
        return compare(*programs, seed=seed, budget=budget)

    program = network()
    better = api.optimize(program, target="h100")
    document = better.certificate
    monkeypatch.setattr(comparison, "compare", noting)
    for _ in range(2):
        check_certificate(document, program, better)
    assert given[0] != given[1]
    document["body"]["pipeline"] = "cse"
    document["body_sha256"] = body_hash(document["body"])
    with pytest.raises(UserError, match="other pipeline"):
        check_certificate(document, program, better)
