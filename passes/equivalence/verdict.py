"""The outcome of comparing two programs, and the evidence for it.

Kinds, from the strongest claim to none:

- `equal`: the same function over exact arithmetic, at every output position.
- `equal-up-to-folding`: the same, if every constant computed at compile time is replaced by
  the expression it was computed from; the constants agree with it up to the stated ulps.
- `equal-up-to-functions`: the same, given the listed identities of real functions.
- `different`: there is a position, an input and two values.
- `unknown`: nothing is claimed; `reason` explains why.

`error_bound` bounds the probability, over the engine's own random draws, that the verdict claims
equality of programs that differ. Rounding of floats is never part of a claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .assumption import Assumption
from .size_claim import SizeClaim

Kind: TypeAlias = Literal[
    "equal", "equal-up-to-folding", "equal-up-to-functions", "different", "unknown"
]
EQUAL: Kind = "equal"
FOLDING: Kind = "equal-up-to-folding"
FUNCTIONS: Kind = "equal-up-to-functions"
DIFFERENT: Kind = "different"
UNKNOWN: Kind = "unknown"

# From the best to the worst; a program's kind is the worst of its outputs'.
ORDER: tuple[Kind, ...] = (EQUAL, FOLDING, FUNCTIONS, UNKNOWN, DIFFERENT)

# A constant farther than this from an expression, in units in the last place of its type, was not
# made from it; the second is for half floats (docs/equality.md states the same numbers).
MAX_ULPS, MAX_HALF_ULPS = 8.0, 4.0


@dataclass(frozen=True)
class OutputVerdict:
    """The outcome for one output.

    Attributes:
        methods: the proofs used: "structural" (the same expression), "symbolic" (equal monomials),
            "field" (equal values modulo a prime); with ", shrunk" if sizes were reduced,
            as in "symbolic, shrunk".
        error_bound: probability of a wrong "equal"; 0 for structural and symbolic proofs.
    """

    name: str
    kind: Kind
    methods: tuple[str, ...] = ()
    error_bound: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Difference:
    """Where two programs differ.

    Attributes:
        output: name of the output in the first program.
        position: the first position that differs, in row-major order.
        values: the programs' values there: float64 if a concrete input shows the difference
            (`witness` is then true), otherwise residues modulo the prime.
        positions: how many of this output's `elements` positions differ.
        seed, scale, steps: draw the inputs of the witness (`witness.inputs_of`). `steps` are seeds
        with factors: the draws are added, if one draw alone showed nothing.
        pool: the numbers that the inputs consist of, if they are of a few.
        inside: where the difference begins, in the user's names, if that is not the output.
        why: the explanation, if known.
    """

    output: str
    position: tuple[int, ...]
    values: tuple[float, float]
    positions: int
    elements: int
    witness: bool
    seed: int = 0
    scale: float = 1.0
    steps: tuple[tuple[int, float], ...] = ()
    pool: tuple[int | float, ...] = ()
    inside: str = ""
    why: str = ""


@dataclass(frozen=True)
class FoldedConstant:
    """A constant made at compile time.

    Attributes:
        name: of the weight.
        expression: over the source's weights, as fold-constants wrote it; empty if none is kept
            and the constant was recognised by its value.
        ulps: largest distance of its data from the expression recomputed in float64, in units in
            the last place of its own element type.
    """

    name: str
    expression: str
    ulps: float


@dataclass(frozen=True)
class Verdict:
    """The answer of `compare`.

    Attributes:
        methods: how many values were proved equal by each method.
        primes: moduli of the field evaluations.
        lanes: independent evaluations of each.
        seed: the seed of the engine's random draws.
    """

    kind: Kind
    outputs: tuple[OutputVerdict, ...]
    error_bound: float  # of a wrong claim of equality
    seconds: float
    seed: int = 0
    methods: tuple[tuple[str, int], ...] = ()
    primes: tuple[int, ...] = ()
    lanes: int = 0
    difference: Difference | None = None  # where they differ
    folded: tuple[FoldedConstant, ...] = ()  # constants replaced by their expressions
    assumptions: tuple[Assumption, ...] = ()  # identities it depends on
    reason: str = ""  # why it is unknown
    sizes: SizeClaim | None = None  # of programs with symbolic dims

    @property
    def is_equal(self) -> bool:
        """Whether equality is claimed, possibly up to folding or listed identities."""
        return self.kind in (EQUAL, FOLDING, FUNCTIONS)

    @property
    def largest_ulps(self) -> float:
        """Largest distance of a folded constant from its expression."""
        return max((c.ulps for c in self.folded), default=0.0)

    def as_json(self) -> dict[str, Any]:
        """A JSON object; equal inputs and seeds give equal objects except for `seconds`."""
        return {
            "kind": self.kind,
            "error_bound": self.error_bound,
            "seconds": self.seconds,
            "seed": self.seed,
            "primes": list(self.primes),
            "lanes": self.lanes,
            "methods": dict(self.methods),
            "outputs": [_output(output) for output in self.outputs],
            "difference": None if self.difference is None else _difference(self.difference),
            "folded": [
                {"name": c.name, "expression": c.expression, "ulps": c.ulps} for c in self.folded
            ],
            "assumptions": [{"name": a.name, "statement": a.statement} for a in self.assumptions],
            "reason": self.reason,
            **({} if self.sizes is None else {"sizes": self.sizes.as_json()}),
        }

    def text(self) -> str:
        """One paragraph for a reader."""
        parts = [self._claim()]
        if self.methods and self.is_equal:
            counts = ", ".join(f"{count} {name}" for name, count in self.methods)
            parts.append(f"Values proved equal: {counts}.")
        if self.is_equal and self.error_bound:
            parts.append(f"Probability of a wrong answer: at most {self.error_bound:.1e}.")
        if self.folded:
            made = "constant was" if len(self.folded) == 1 else "constants were"
            parts.append(
                f"{len(self.folded)} {made} made at compile time, within {self.largest_ulps:.3g} "
                "ulp of what it stands for."
            )
        if self.assumptions:
            listed = "; ".join(f"{a.name}: {a.statement}" for a in self.assumptions)
            parts.append(f"Assumed: {listed}.")
        parts.append(f"({self.seconds:.2f} s)")
        return " ".join(parts)

    def _claim(self) -> str:
        sizes = "" if self.sizes is None else " and every size"
        if self.sizes is not None and self.sizes.guards:
            sizes += " that the guards allow"
        match self.kind:
            case "equal":
                return f"Equal at every output position{sizes}, over exact arithmetic."
            case "equal-up-to-folding":
                return (
                    f"Equal at every output position{sizes}, over exact arithmetic, taking each "
                    "folded constant for the expression it was made from."
                )
            case "equal-up-to-functions":
                return f"Equal at every output position{sizes}, given identities of real functions."
            case "different":
                at = "" if self.sizes is None else f" at {self.sizes.cases[-1].where}"
                return f"Different{at}: {_difference_text(self.difference)}"
            case _:
                return f"Unknown: {self.reason}."


def _output(output: OutputVerdict) -> dict[str, Any]:
    return {
        "name": output.name,
        "kind": output.kind,
        "methods": list(output.methods),
        "error_bound": output.error_bound,
        "reason": output.reason,
    }


def _difference(found: Difference) -> dict[str, Any]:
    return {
        "output": found.output,
        "position": list(found.position),
        "values": [_number(v) for v in found.values],
        "positions": found.positions,
        "elements": found.elements,
        "witness": found.witness,
        "seed": found.seed,
        "scale": found.scale,
        "steps": [list(step) for step in found.steps],
        "pool": list(found.pool),
        "inside": found.inside,
        "why": found.why,
    }


def _number(value: float) -> float | str:
    """JSON has no NaN and no infinities."""
    return value if abs(value) < float("inf") else str(value)


def _difference_text(found: Difference | None) -> str:
    if found is None:
        return "no position is known."
    a, b = found.values
    kind = "" if found.witness else " (modulo a prime)"
    inside = f"; it begins at {found.inside}" if found.inside else ""
    inside += f": {found.why}" if found.why else ""
    return (
        f"output '{found.output}' at {list(found.position)} is {a:.9g} against {b:.9g}{kind}, "
        f"{found.positions} of {found.elements} positions differ{inside}."
    )
