"""What `isoform --help` shows: commands in groups, examples; and shell completion."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ...dialects.errors import UserError

# Commands by what one wants; each stands in one group.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("look at a model", ("check", "import", "zoo")),
    ("make it faster", ("optimize", "tune", "explain", "view")),
    ("run it", ("run", "bench")),
    ("trust it", ("verify", "bisect", "rules")),
    ("your shell", ("completion",)),
)

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": (
        "isoform zoo resnet18 -o resnet18.onnx",
        "isoform optimize resnet18.onnx -o faster.mlir --report report.json",
        "isoform run faster.mlir --seed 1",
        "isoform verify resnet18.onnx faster.mlir",
    ),
    "check": ("isoform check model.onnx", "isoform check model.onnx --shape batch=1 --json"),
    "import": ("isoform import model.onnx -o model.mlir", "isoform import zoo:dcgan -o - | less"),
    "optimize": (
        "isoform optimize model.onnx -o faster.onnx",
        "isoform optimize model.onnx --target h100 --emit graph -o faster.mlir -v",
        "isoform optimize model.onnx --strategy saturate,derive --budget 120 --report r.json",
    ),
    "run": (
        "isoform run model.onnx --inputs in.npz --output out.npz",
        "isoform run zoo:resnet18 --profile trace.json",
        "isoform-opt m.mlir -p cse | isoform run -",
    ),
    "bench": ("isoform bench model.onnx --against onnxruntime,openvino --threads 4",),
    "zoo": ("isoform zoo", "isoform zoo dcgan -o dcgan.onnx"),
    "explain": (
        "isoform explain report.json",
        "isoform explain report.json --rewrites matmul-associates",
    ),
    "view": ("isoform view report.json -o page.html", "isoform view zoo:resnet18 -o page.html"),
    "verify": ("isoform verify model.onnx faster.mlir", "isoform verify certificate.json"),
    "bisect": ("isoform bisect model.onnx faster.mlir", "isoform bisect m.mlir -p canonicalize"),
    "rules": ("isoform rules list laws", "isoform rules verify mine.rules"),
    "tune": ("isoform tune zoo:resnet18 --trials 64",),
    "completion": (
        "isoform completion bash > ~/.local/share/bash-completion/completions/isoform",
        "isoform completion zsh > ~/.zfunc/_isoform",
        "isoform completion bash --of isoform-opt",
    ),
}


def examples(command: str) -> str:
    """The examples of a command as the end of its help; of '' those of the whole."""
    lines = EXAMPLES.get(command, ())
    return "\n".join(["examples:", *(f"  {line}" for line in lines)]) if lines else ""


def overview(summaries: Mapping[str, str]) -> str:
    """`isoform --help`: all commands in their groups."""
    width = max(map(len, summaries))
    lines = ["usage: isoform COMMAND [flags]", ""]
    for title, names in GROUPS:
        lines.append(f"{title}:")
        lines += [f"  {name:<{width}}  {summaries[name]}" for name in names]
        lines.append("")
    lines += ["isoform COMMAND --help lists the flags of each; docs/commands.md tells more.", ""]
    return "\n".join([*lines, examples(""), ""])


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """A script that completes the parser's commands and flags, and files where files are meant.

    Raises: UserError where shtab is not installed.
    """
    try:
        import shtab  # pyright: ignore[reportMissingImports] - of the extra `completion`
    except ImportError as error:
        hint = "pip install 'isoform[completion]'"
        raise UserError("shtab is not installed", hint=hint) from error
    _mark_files(parser, shtab.FILE)
    return shtab.complete(parser, shell=shell) + "\n"


def _mark_files(parser: argparse.ArgumentParser, files: Any) -> None:
    """Mark arguments that name files: their metavar is one, or has an extension."""
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        choices: Any = action.choices
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            for inner in choices.values():
                _mark_files(inner, files)
        elif choices is None and action.nargs != 0:
            shown = str(action.metavar or action.dest)
            if any(part in shown for part in (".", "FILE", "MODEL", "PATH", "file")):
                action.complete = files  # pyright: ignore[reportAttributeAccessIssue]
