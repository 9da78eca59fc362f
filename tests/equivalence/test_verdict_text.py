"""What a verdict says to a reader, word for word."""

from dataclasses import replace

import pytest

from isoform.passes.equivalence.verdict import (
    Assumption,
    Difference,
    FoldedConstant,
    Kind,
    OutputVerdict,
    Verdict,
)

FOUND = Difference("y", (1, 2), (1.5, -2.0), 3, 8, witness=True)
FOLDED = FoldedConstant("w", "x * y", 0.25)


def verdict(kind: Kind, **more: object) -> Verdict:
    return replace(Verdict(kind, (OutputVerdict("y", kind),), 0.0, 1.0), **more)


SAID: list[tuple[Verdict, str]] = [
    (verdict("equal"), "Equal at every output position, over exact arithmetic. (1.00 s)"),
    (
        verdict("equal", methods=(("field", 2), ("symbolic", 1)), error_bound=1e-12),
        "Equal at every output position, over exact arithmetic. Values proved equal: 2 field, "
        "1 symbolic. Probability of a wrong answer: at most 1.0e-12. (1.00 s)",
    ),
    (
        verdict("equal-up-to-folding", folded=(FOLDED,)),
        "Equal at every output position, over exact arithmetic, taking each folded constant for "
        "the expression it was made from. 1 constant was made at compile time, within 0.25 ulp of "
        "what it stands for. (1.00 s)",
    ),
    (
        verdict(
            "equal-up-to-functions",
            folded=(FOLDED, replace(FOLDED, ulps=0.5)),
            assumptions=(Assumption("cancel", "a / a = 1"), Assumption("odd", "f(-x) = -f(x)")),
        ),
        "Equal at every output position, given identities of real functions. 2 constants were made "
        "at compile time, within 0.5 ulp of what it stands for. Assumed: cancel: a / a = 1; odd: "
        "f(-x) = -f(x). (1.00 s)",
    ),
    (verdict("unknown", reason="no time"), "Unknown: no time. (1.00 s)"),
    (verdict("different"), "Different: no position is known. (1.00 s)"),
    (
        verdict("different", difference=FOUND, methods=(("field", 2),), error_bound=0.5),
        "Different: output 'y' at [1, 2] is 1.5 against -2, 3 of 8 positions differ. (1.00 s)",
    ),
    (
        verdict("different", difference=replace(FOUND, witness=False, inside="op 'a'", why="sign")),
        "Different: output 'y' at [1, 2] is 1.5 against -2 (modulo a prime), 3 of 8 positions "
        "differ; it begins at op 'a': sign. (1.00 s)",
    ),
]


@pytest.mark.parametrize(("given", "text"), SAID, ids=[text[:40] for _, text in SAID])
def test_a_verdict_says(given: Verdict, text: str) -> None:
    assert given.text() == text


def test_a_verdict_as_json_holds_no_nan_and_no_infinity() -> None:
    odd = replace(FOUND, values=(float("nan"), float("-inf")), steps=((7, 0.5),))
    given = verdict("different", difference=odd, folded=(FOLDED,), primes=(7,))
    found = given.as_json()
    assert found["difference"]["values"] == ["nan", "-inf"]
    assert found["difference"]["steps"] == [[7, 0.5]]
    assert found["folded"] == [{"name": "w", "expression": "x * y", "ulps": 0.25}]
    assert found["primes"] == [7]
    assert verdict("equal").as_json()["difference"] is None
    assert (verdict("equal").lanes, verdict("equal").seed) == (0, 0)
    assert verdict("equal", folded=(FOLDED, replace(FOLDED, ulps=3.0))).largest_ulps == 3.0
    assert [verdict(k).is_equal for k in ("equal", "different", "unknown")] == [True, False, False]
