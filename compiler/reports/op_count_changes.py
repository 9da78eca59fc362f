"""Say in a line what a pass changed: rewrites, and operations by name before and after."""

from collections import Counter

from xdsl.dialects.builtin import ModuleOp

from ..pass_manager import PassRun


class OpCountChanges:
    """Compares the operations of a module from pass to pass.

    Example: `canonicalize: 3 rewrites; graph.add 4 -> 2, graph.mul 0 -> 1`
    """

    def __init__(self, module: ModuleOp) -> None:
        self.before = _census(module)

    def after(self, run: PassRun, module: ModuleOp) -> str:
        """Describe the last pass and remember its result for the next."""
        before, now = self.before, _census(module)
        self.before = now
        changed = [n for n in sorted({*before, *now}) if before[n] != now[n]]
        counts = ", ".join(f"{n} {before[n]} -> {now[n]}" for n in changed)
        plural = "" if run.rewrites == 1 else "s"
        return f"{run.name}: {run.rewrites} rewrite{plural}; {counts or 'same operations'}"


def _census(module: ModuleOp) -> Counter[str]:
    return Counter(op.name for op in module.walk())
