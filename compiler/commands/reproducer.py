"""Crash reproducers: a module and the pipeline that failed on it, in one file that replays.

The pipeline stands as mlir-opt writes it, in the resources at the end of the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.errors import UserError
from ...dialects.files import write_whole
from ..frontends.module_text import module_text
from ..pass_manager import anchor_of
from ..pipeline_text import MODULE

KEY = "mlir_reproducer"


def pipeline_text(passes: Sequence[ModulePass]) -> str:
    """A pipeline as text, passes nested in the op that they run on."""
    items = list[str]()
    for anchor, group in groupby(passes, anchor_of):
        inner = ",".join(map(str, group))
        items.append(inner if anchor == MODULE else f"{anchor}({inner})")
    return f"{MODULE}({','.join(items)})"


@dataclass
class Reproducer:
    """Writes `path` where a pass fails.

    Attributes:
        local: the file begins before the pass that failed, and names that pass alone.
        plugins: files that the command line of the replay has to name.
    """

    path: str
    passes: tuple[ModulePass, ...]
    local: bool = False
    plugins: Sequence[str] = ()
    verify: bool = True
    _text: str = field(default="", init=False)

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Remember the module: before the first pass, or with `local` before each."""
        if self.local or not self._text:
            self._text = module_text(module)

    def failed(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Write the file."""
        del module
        pipeline = pipeline_text([pass_] if self.local else self.passes)
        flags = "".join(f" --plugin {name}" for name in self.plugins)
        head = f"// isoform-opt {Path(self.path).name} --run-reproducer{flags}\n"
        tail = (
            "\n{-#\n  external_resources: {\n"
            f"    {KEY}: {{\n      pipeline: {json.dumps(pipeline)},\n"
            f"      verify_each: {str(self.verify).lower()}\n    }}\n  }}\n#-}}\n"
        )
        write_whole(self.path, head + self._text + tail)


def pipeline_in(resources: Mapping[str, Mapping[str, str]], name: str) -> str:
    """The pipeline that a reproducer names. Raises UserError where the file is none."""
    found = resources.get(KEY, {}).get("pipeline")
    if found is None:
        hint = "isoform-opt --reproducer FILE writes one where a pass fails"
        raise UserError("this file is no crash reproducer", where=name, hint=hint)
    return found
