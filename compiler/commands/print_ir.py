"""Print the IR around passes, as mlir-opt's `--mlir-print-ir-*` flags ask."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.errors import UsageError, did_you_mean
from ...dialects.files import write_whole
from ..frontends.module_text import module_text
from ..pass_manager import PassRun


class PrintIr:
    """Prints a module on stderr before and after the chosen passes, or into a folder of files.

    Args:
        arguments: the parsed `--print-ir-*` flags of isoform-opt (opt_arguments.py).
        passes: the pipeline; a name that is not in it is an error.

    Raises:
        UsageError: a flag names a pass that does not run.
    """

    def __init__(self, arguments: Namespace, passes: tuple[ModulePass, ...]) -> None:
        names = [p.name for p in passes]
        self.before_names = _listed(
            "--print-ir-before", arguments.print_ir_before, arguments.print_ir_before_all, names
        )
        self.changed_only: bool = arguments.print_ir_after_change
        every = arguments.print_ir_after_all or (self.changed_only and not arguments.print_ir_after)
        self.after_names = _listed("--print-ir-after", arguments.print_ir_after, every, names)
        self.on_failure: bool = arguments.print_ir_after_failure
        self.between: bool = arguments.print_between_passes
        self.last = passes[-1] if passes else None
        folder: str | None = arguments.print_ir_tree_dir
        self.folder = None if folder is None else Path(folder)
        self.number = 0
        self._text = ""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Print before a pass, and remember the text where changes are asked for."""
        if self.changed_only:
            self._text = module_text(module)
        if pass_.name in self.before_names:
            self._dump(f"Before {pass_.name}", module)

    def after(self, run: PassRun, module: ModuleOp) -> None:
        """Print after a pass; with `--print-ir-after-change` only where it changed the module."""
        if self.between and run.pass_ is not self.last:
            print(f"IR after {run.name}:\n{module_text(module)}", file=sys.stderr)
        if run.name not in self.after_names:
            return
        if self.changed_only and module_text(module) == self._text:
            return
        self._dump(f"After {run.name}", module)

    def failed(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Print what a pass that failed has left."""
        if self.on_failure:
            self._dump(f"After {pass_.name} Failed", module)

    def _dump(self, when: str, module: ModuleOp) -> None:
        text = f"// -----// IR Dump {when} //----- //\n{module_text(module)}"
        if self.folder is None:
            print(text, file=sys.stderr)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{self.number}_{when.lower().replace(' ', '_')}.mlir"
        write_whole(self.folder / name, text)
        self.number += 1


def _listed(flag: str, text: str, every: bool, names: list[str]) -> frozenset[str]:
    """Return the names that a flag lists; all of them with `every`."""
    listed = [name.strip() for name in text.split(",") if name.strip()]
    for name in listed:
        if name not in names:
            hint = did_you_mean(name, names) or f"they are {', '.join(names) or 'none'}"
            raise UsageError(f"the pipeline has no pass '{name}'", where=flag, hint=hint)
    return frozenset(names if every else listed)
