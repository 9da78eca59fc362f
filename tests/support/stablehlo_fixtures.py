"""Write tests/fixtures/stablehlo.jsonl.gz: what jax.export writes for each case, and jax's results.

The default tests import and run these texts without jax. Needs jax:

    PYTHONPATH=tests python -m support.stablehlo_fixtures
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export

from support.stablehlo_arguments import Case
from support.stablehlo_cases import cases

PATH = Path(__file__).resolve().parents[1] / "fixtures" / "stablehlo.jsonl.gz"


def main() -> None:
    """Write every case that jax can export."""
    lines = [json.dumps(exported(case), separators=(",", ":")) for case in cases()]
    text = "".join(f"{line}\n" for line in lines)
    PATH.write_bytes(gzip.compress(text.encode(), mtime=0))


def exported(case: Case) -> dict[str, Any]:
    """A case as plain data: its text, arguments and results in the order of the text's."""
    name, function, arguments = case
    jitted = jax.jit(function)
    found = export.export(jitted)(*arguments)
    text, leaves = str(found.mlir_module()), jax.tree.leaves(arguments)
    given = [np.asarray(leaves[k]) for k in found.module_kept_var_idx]
    results = [np.asarray(v) for v in jax.tree.leaves(jitted(*arguments))]
    return {
        "name": name,
        "text": _without_locations(text),
        "inputs": [_encoded(v) for v in given],
        "outputs": [_encoded(v) for v in results],
    }


def _without_locations(text: str) -> str:
    """The text without the places of Python lines, which name this machine's folders."""
    text = re.sub(r"^#loc.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r" loc\((?:#loc\d*|unknown|\"[^\"]*/[^\"]*\"\([^()]*\))\)", "", text)


def _encoded(array: Any) -> list[Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return [array.dtype.name, list(array.shape), data]


if __name__ == "__main__":
    main()
