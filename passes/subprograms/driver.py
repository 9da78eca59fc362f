"""Search the subprograms of a program: find them, ask proposers, price, keep the best, record.

Subprograms are contractions, and groups that proposers treat together (find.py). Decisions are
stored on disk (decisions.py). If the target runs here, the proposals that are cheapest by the model
and the subprogram itself are compiled alone and measured in turn. The subprogram stays as it is
unless a proposal is faster by more than noise. On other targets the model decides. A proposal whose
operations alone take longer at the machine's peak is not measured. The search stops when nothing
left could save enough. `optimize` measures the whole programs once more.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...dialects.errors import say
from ...dialects.program import Program, add_pipeline, where
from ..derivation.apply_steps import find_scope
from ..margins import ACCEPT, MEASURE, Pruning
from ..search_result import Applied, Limits, Point, Rejected, SearchResult, StopReason
from .baselines import subprogram_key
from .decisions import Decision
from .find import Subprogram, priced, split, weight
from .prepare import run
from .prices import Prices
from .proposals import ChosenOccurrence, DoesNotFitError, Proposal, Proposals, Proposer
from .selection import best_of, chosen_occurrences, declined
from .state import SearchState

# Reasons to stop, the weightiest first.
_STOPS: tuple[StopReason, ...] = ("interrupted", "time", "memory", "nodes", "steps")


def search_subprograms(
    program: Program,
    proposers: Sequence[Proposer],
    limits: Limits,
    prices: Prices,
    pruning: Pruning,
) -> SearchResult:
    """Replace the subprograms of a program by proposals that gain."""
    return SubprogramSearch(program, proposers, limits, prices, pruning).run()


class SubprogramSearch(SearchState):
    """One search."""

    def __init__(
        self,
        program: Program,
        proposers: Sequence[Proposer],
        limits: Limits,
        prices: Prices,
        pruning: Pruning,
    ) -> None:
        super().__init__(program, limits, prices, pruning)
        self.begun = time.perf_counter()
        self.before, self.proposers = program, proposers
        for proposer in proposers:
            proposer.begin(self)
        self.singles = split(self.work.module, prices.scopes)
        found = {sub.key: sub for sub in self.singles}
        self.asked = {key: list(proposers) for key in found}
        for proposer in proposers:
            for sub in proposer.together():
                found.setdefault(sub.key, sub)
                self.asked.setdefault(sub.key, []).append(proposer)
        self.subs = list(found.values())
        if prices.measure is None:
            # Modelled, several contractions at once gain most and take the least time to search.
            self.subs.sort(key=lambda sub: len(self.contractions(sub.occurrences[0])) == 1)
        self.decided: list[tuple[Subprogram, Decision]] = []
        self.saved: list[Point] = [(0.0, 0, 0.0)]  # with what is saved in place of what is left
        self.stops: list[StopReason] = []
        self.seen: Counter[str] = Counter()
        self.rejected: list[Rejected] = []

    def run(self) -> SearchResult:
        """Decide for each subprogram, then rewrite them all."""
        try:
            self._decide()
        except KeyboardInterrupt:
            self.stops.append("interrupted")
        chosen = chosen_occurrences(self.decided, self.parts)
        choices = [chosen] if chosen else []
        if chosen and "interrupted" not in self.stops:
            choices += [v for one in self.proposers for v in one.variants(chosen)]
            other = chosen_occurrences(self.decided, self.parts, by_time_left=True)
            choices += [other] if other not in choices else []
        made = [self._rewritten(choice) for choice in choices]
        for proposer in self.proposers:
            made = [made[k] for k in proposer.order([result.program for result in made])]
        result = made[0] if made else SearchResult(self.before.clone(), "finished")
        result.stop_reason = _first_of(self.stops)
        result.rejected = [*self.rejected, *result.rejected]
        result.alternatives = [other.program for other in made[1:]]
        result.looked_at = self._looked_at()
        whole = sum(
            self.baselines.known_seconds(sub) * len(sub.occurrences) for sub in self.singles
        )
        result.curve = [(t, count, whole - saved) for t, count, saved in self.saved]
        return result

    # --- one subprogram ---

    def _decide(self) -> None:
        """Search worthwhile subprograms, in order, until nothing left could save enough."""
        least = self.pruning.share * priced(self.singles)
        for sub in self.singles:
            if weight(sub) >= least and self.left(self.pruning.baselines) > 0:
                self.baselines.seconds(sub)
        for number, sub in enumerate(self.subs):
            if weight(sub) < least:
                self.seen["too small"] += 1
                if len(sub.roots) == 1:
                    self._reject(sub, "it takes too small a share of the program")
                continue
            if (reason := self._hopeless(self.subs[number:])) is not None:
                self.rejected.append(Rejected(self.proposers[0].rule, "main", reason))
                break
            reasons = {one.rule: one.why_not(sub) for one in self.asked[sub.key]}
            able = [one for one in self.asked[sub.key] if reasons[one.rule] is None]
            if able:
                self._search(sub, able)
            else:
                self.seen["cannot gain"] += 1
                self._reject(sub, str(next(iter(reasons.values()))))

    def _search(self, sub: Subprogram, proposers: Sequence[Proposer]) -> None:
        """A stored decision, or a new one; None without time."""
        kind = "modelled" if self.prices.measure is None else "measured"
        asked = [f"{one.rule} {one.key}" for one in proposers]
        key = (*subprogram_key(sub, self.prices.costs), *asked, kind)
        decision = self.record.load(key)
        if decision is None:
            left = self.left(1.0 if len(sub.roots) == 1 else self.pruning.grouping)
            if left <= 0:
                self.stops.append("time")
                self.seen["not reached"] += 1
                self._reject(sub, "the time was spent")
                return
            started = time.perf_counter()
            rules = ", ".join(one.rule for one in proposers)
            say(f"search {rules}: {self._place(sub.occurrences[0])}")
            seconds = min(left, self.pruning.seconds)
            proposed = [(one, one.propose(sub, seconds)) for one in proposers]
            decision = self._decision(sub, proposed)
            decision = replace(decision, spent=time.perf_counter() - started)
            if self._lasts(decision, proposed):
                self.record.save(key, decision)
        self.seen[decision.how] += 1
        if decision.stop != "finished":
            self.stops.append(decision.stop)
            if decision.stop != "steps":
                self.seen[f"cut short ({decision.stop})"] += 1
        if decision.trail is None:
            self._reject(sub, declined(decision))
        self.decided.append((sub, decision))
        if decision.trail is not None:
            chosen = chosen_occurrences(self.decided, self.parts)
            saved = sum(one.decision.before - one.decision.after for one in chosen)
            after = time.perf_counter() - self.begun
            self.saved.append((after, len(self.decided), max(saved, self.saved[-1][2])))

    def _lasts(self, decision: Decision, proposed: Sequence[tuple[Proposer, Proposals]]) -> bool:
        """Whether another process may use the decision: it would find the same."""
        taken = [p for _, one in proposed for p in one.found if p.trail == decision.trail]
        return all(one.repeatable for _, one in proposed) and all(p.repeatable for p in taken)

    def _decision(
        self, sub: Subprogram, proposed: Sequence[tuple[Proposer, Proposals]]
    ) -> Decision:
        """The best proposal, if it is faster than the subprogram as it stands."""
        stop = _first_of([one.stop for _, one in proposed])
        looked = " and ".join(one.looked for _, one in proposed)
        before = min(one.before for _, one in proposed)
        none = Decision(None, 0.0, before, before, "modelled", stop, looked, proposed[0][1].how)
        found = [replace(p, proposer=who.rule) for who, one in proposed for p in one.found]
        alike = max(who.alike for who, _ in proposed)
        if self.prices.measure is None:
            return best_of(none, before, found, [p.seconds for p in found], alike)
        able = [p for p in found if not p.least or p.least < self._accepted(sub)]
        if not able:
            before = self.baselines.seconds(sub) if found else self.baselines.known_seconds(sub)
            least = min((p.least for p in found), default=before)
            return replace(none, before=before, after=least, kind="bound")
        programs, kept = [self.baselines.program(sub)], list[Proposal]()
        for proposal in able:
            program = proposal.write()
            if program is not None and not any(_same(program, other) for other in programs):
                programs.append(program)
                kept.append(proposal)
        if not kept:
            return replace(none, kind="measured")
        seconds = self.prices.measure(programs, MEASURE.subprogram_seconds)
        none = replace(none, kind="measured", measured=len(kept))
        return best_of(none, seconds[0], kept, seconds[1:], alike)

    def _accepted(self, sub: Subprogram) -> float:
        """The seconds that a program must stay below to count as faster."""
        return self.baselines.seconds(sub) * ACCEPT.subprogram

    def _hopeless(self, left: Sequence[Subprogram]) -> str | None:
        """Why the gain so far plus all possible gains are too small, or None."""
        if not self.pruning.gain:
            return None
        done = {sub.roots: decision for sub, decision in self.decided}
        names = {n for sub in left for at in sub.occurrences for n in self.contractions(at)}
        total = gained = conceivable = 0.0
        for sub in self.singles:
            decision = done.get(sub.roots)
            before = self.baselines.known_seconds(sub) if decision is None else decision.before
            after = before if decision is None or decision.trail is None else decision.after
            best = min(after, min(one.least(sub) for one in self.proposers))
            count = sum(name in names for name in sub.names)
            total += before * len(sub.occurrences)
            gained += (before - after) * len(sub.occurrences)
            conceivable += (after - best) * count
        if gained + conceivable >= self.pruning.gain * total:
            return None
        share = f"{(gained + conceivable) / total:.1%}" if total else "nothing"
        return f"all that is left to search could save {share} of the program: stopped"

    def _reject(self, sub: Subprogram, reason: str) -> None:
        rule = self.asked[sub.key][0].rule
        self.rejected.append(Rejected(rule, self._place(sub.occurrences[0]), reason))

    def _place(self, names: Sequence[str]) -> str:
        return " with ".join(where(find_scope(self.work.module, name)) for name in names)

    def _looked_at(self) -> str:
        """How many subprograms were searched, what happened to the others, and the longest time."""
        others = [f"{count} {what}" for what, count in self.seen.items() if what != "searched"]
        parts = [f"{self.seen['searched']} searched", *others]
        if self.decided:
            longest = max(d.spent + self.baselines.spent(sub) for sub, d in self.decided)
            parts.append(f"{longest:.0f} s at most")
        return f"{len(self.subs)} subprograms: {', '.join(parts)}"

    # --- the program ---

    def _rewritten(self, choices: Sequence[ChosenOccurrence]) -> SearchResult:
        """A copy of the program with these subprograms replaced, each recorded."""
        added = any(name in self.parts for choice in choices for name in choice.names)
        made = (self.work if added else self.plain).clone()
        result = SearchResult(made, "finished")
        pipelines: list[str] = []
        for choice in choices:
            proposer = next(p for p in self.proposers if p.rule == choice.decision.proposer)
            trial = made.clone()
            try:
                done = proposer.apply(trial.module, choice)
            except DoesNotFitError as error:
                rejected = Rejected(proposer.rule, self._place(choice.names), str(error))
                result.rejected.append(rejected)
                continue
            made = trial
            pipelines.append(done.pipeline)
            delta = (choice.decision.after - choice.decision.before) / len(done.rules)
            at = self._place(choice.names)
            steps = [*done.steps, *[""] * (len(done.rules) - len(done.steps))]
            result.applied += [
                Applied(rule, at, done.proof, delta, floats, became)
                for (rule, floats), became in zip(done.rules, steps, strict=True)
            ]
        add_pipeline(made.module, ",".join(text for text in pipelines if text))
        for proposer in self.proposers:
            run(made, proposer.finish)
        made.module.verify()
        result.program = made
        return result


def _first_of(stops: Sequence[StopReason]) -> StopReason:
    """The one stop reason to report of several."""
    known: list[StopReason] = [reason for reason in _STOPS if reason in stops]
    return known[0] if known else "finished"


def _same(one: Program, other: Program) -> bool:
    return one.module.is_structurally_equivalent(other.module)
