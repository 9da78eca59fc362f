"""What `isoform-opt` watches while a pipeline runs: reports, checks and reproducers."""

from __future__ import annotations

import sys
from argparse import Namespace

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..checks.rewrite_recorder import RewriteRecorder
from ..pass_manager import AfterPass, PassRun
from ..reports.op_count_changes import OpCountChanges
from .print_ir import PrintIr
from .reproducer import Reproducer
from .timing_tree import TimingTree


class Instruments:
    """The instruments that the flags ask for, on one module.

    Args:
        check: compares the module after each pass; None without `--check`.

    Raises:
        UsageError: a flag names a pass that does not run.
    """

    def __init__(
        self,
        arguments: Namespace,
        passes: tuple[ModulePass, ...],
        module: ModuleOp,
        check: AfterPass | None,
        recorder: RewriteRecorder,
        timing: TimingTree,
    ) -> None:
        self.time_passes: bool = arguments.time_passes
        self.explain = OpCountChanges(module) if arguments.explain else None
        self.printing = PrintIr(arguments, passes)
        self.check, self.recorder, self.timing = check, recorder, timing
        self.reproducer = (
            None
            if arguments.reproducer is None
            else Reproducer(
                arguments.reproducer,
                passes,
                arguments.local_reproducer,
                arguments.plugin,
                not arguments.disable_verify,
            )
        )

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Watch a pass begin."""
        if self.reproducer is not None:
            self.reproducer.before(pass_, module)
        self.printing.before(pass_, module)

    def after(self, run: PassRun, module: ModuleOp) -> None:
        """Report on a pass, on stderr."""
        self.recorder.after(run.name)
        self.timing.runs.append(run)
        if self.time_passes:
            print(f"Pass {run.name} took {run.seconds:.6f} seconds", file=sys.stderr)
        if self.explain is not None:
            print(self.explain.after(run, module), file=sys.stderr)
        self.printing.after(run, module)
        if self.check is not None:
            self.check(run, module)

    def failed(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Watch a pass fail."""
        self.printing.failed(pass_, module)
        if self.reproducer is not None:
            self.reproducer.failed(pass_, module)
