"""The egglog session of the provers and the generator: run a program in steps, query equality."""

from __future__ import annotations

from typing import Any


class TermGraph:
    """An e-graph of egglog. The import of egglog takes 0.25 s, so it happens here."""

    def __init__(self, program: str) -> None:
        from egglog.bindings import EGraph

        self._engine: Any = EGraph()
        self.run(program)

    def run(self, text: str) -> Any:
        """Run commands and return what they report."""
        return self._engine.run_program(*self._engine.parse_program(text))

    def rewrite(self, iterations: int, most: int, goal: str = "") -> bool:
        """Apply all rules a few times. Stop at the match limit, or when nothing is new.

        Args:
            goal: facts; stop when they hold.

        Returns:
                Whether the goal holds; False if no goal was given.
        """
        matches = 0
        for _ in range(iterations):
            report = self.run("(run 1)")[0].report
            if goal and self.holds(goal):
                return True
            matches += sum(report.num_matches_per_rule.values())
            if not report.updated or matches > most:
                break
        return False

    def holds(self, facts: str) -> bool:
        """Whether all facts hold, such as `(= $a $b)`."""
        from egglog.bindings import EggSmolError

        try:
            self.run(f"(check {facts})")
        except EggSmolError:
            return False
        return True
