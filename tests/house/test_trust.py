"""docs/claims.md, trust.md, equality.md: each claim names a test; numbers are those of the code."""

import re
from pathlib import Path

from isoform.passes.equivalence import run_check, witness
from isoform.passes.equivalence.residues import prime_pool
from isoform.passes.equivalence.translate import MAX_KNOWN
from isoform.passes.equivalence.verdict import MAX_ULPS

ROOT = Path(__file__).resolve().parents[2]
TEXT = "\n".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("equality", "trust"))
TABLE = (ROOT / "docs" / "claims.md").read_text()


def test_each_claim_names_tests_that_exist() -> None:
    rows = [line for line in TABLE.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 30
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, f"no test is named: {row}"
        for path, name in named:
            text = (ROOT / path).read_text()
            assert re.search(rf"^def {name}\(", text, re.MULTILINE), f"{path} has no {name}"


def test_its_numbers_are_those_of_the_code() -> None:
    stated = {int(n) for n in re.findall(r"(\d+) units in the last place", TEXT)}
    assert stated == {int(MAX_ULPS)}
    assert f"the {len(prime_pool()):,} primes" in TEXT
    assert f"Literals (`graph.constant`) of up to {MAX_KNOWN:,} elements" in TEXT
    assert f"difference of more than {witness.TOLERANCE:.0e}".replace("e-0", "e-") in TEXT
    assert (run_check.SINGLE, run_check.HALF, run_check.DOUBLE) == (2**-10, 2**-4, 2**-24)
    assert "more than 2^-10 of the output's" in TEXT
    assert "(2^-4 with half floats, 2^-24 with float64 alone)" in TEXT
