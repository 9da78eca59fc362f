"""The origin of an ONNX model, stored in its metadata by the exporter and read by the importer.

`isoform.expressions` is a JSON object. For each initialiser made at compile time it has the ops
that made it, as `isoform.expression` in IR text. `isoform.pipeline` names the passes. Models of
other tools have neither. Unreadable metadata is ignored: `isoform verify` checks the claim anyway.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx
from xdsl.dialects.builtin import StringAttr

from ...dialects.graph import WeightOp
from ...dialects.program import EXPRESSION, PIPELINE, Program, add_pipeline

EXPRESSIONS = "isoform.expressions"


@dataclass(frozen=True)
class Origin:
    """Expressions by the name of the initialiser, and the passes that made the model."""

    expressions: Mapping[str, str] = field(default_factory=dict[str, str])
    pipeline: str = ""

    def attach(self, program: Program) -> Program:
        """Put the origin on a program's weights and module, as the passes did."""
        for op in program.main.body.block.ops if self.expressions else ():
            if isinstance(op, WeightOp) and op.key in self.expressions:
                op.attributes[EXPRESSION] = StringAttr(self.expressions[op.key])
        add_pipeline(program.module, self.pipeline)
        return program


def write_origin(model: onnx.ModelProto, expressions: Mapping[str, str], pipeline: str) -> None:
    """Add the known origin to a model's metadata, if there is any."""
    if expressions:
        text = json.dumps(dict(sorted(expressions.items())))
        model.metadata_props.add(key=EXPRESSIONS, value=text)
    if pipeline:
        model.metadata_props.add(key=PIPELINE, value=pipeline)


def read_origin(model: onnx.ModelProto) -> Origin:
    """Read a model's metadata."""
    found = {entry.key: entry.value for entry in model.metadata_props}
    try:
        expressions = json.loads(found.get(EXPRESSIONS, "{}"))
    except (json.JSONDecodeError, RecursionError):
        expressions = {}
    if not isinstance(expressions, dict):
        expressions = {}
    kept = {str(k): v for k, v in expressions.items() if isinstance(v, str)}
    return Origin(kept, found.get(PIPELINE, ""))
