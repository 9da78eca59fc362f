"""Functions of jax with new arguments each, exported now and compared with what jax computes."""

# pyright: reportMissingImports=false

from __future__ import annotations

import os

import numpy as np
import pytest

import isoform
from isoform.dialects import reference
from isoform.lowering.stablehlo_to_graph.importer import import_text

pytestmark = pytest.mark.jax

SEEDS = [int(s) for s in os.environ.get("ISOFORM_JAX_SEEDS", "7").split(",")]
NEAR = {"float32": 5e-5, "float16": 8e-3, "bfloat16": 5e-2}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("compiled", [False, True])
def test_every_case_with_new_arguments(seed: int, compiled: bool) -> None:
    import jax
    from jax import export
    from support.stablehlo_cases import cases

    wrong: list[str] = []
    for name, function, arguments in cases(seed):
        jitted = jax.jit(function)
        exported = export.export(jitted)(*arguments)
        program = import_text(str(exported.mlir_module()), str)
        leaves = jax.tree.leaves(arguments)
        given = [np.asarray(leaves[k]) for k in exported.module_kept_var_idx]
        feeds = dict(zip(program.inputs, given, strict=True))
        run = isoform.compile(program) if compiled else None
        found = reference.run(program, feeds) if run is None else run(*given)
        results = [np.asarray(v) for v in jax.tree.leaves(jitted(*arguments))]
        near = max(NEAR.get(a.dtype.name, 0.0) for a in (*given, *results))
        pairs = zip(found.values(), results, strict=True)
        if not all(_near(np.asarray(a), b, near) for a, b in pairs):
            wrong.append(name)
    assert not wrong


def _near(a: np.ndarray, b: np.ndarray, near: float) -> bool:
    wide = (v.astype(np.float64) for v in (a, b))
    return a.shape == b.shape and np.allclose(*wide, rtol=near, atol=near, equal_nan=True)
