"""The zoo's models: their ONNX export against onnxruntime, small sizes against float64."""

import numpy as np
import onnx
import pytest
from support.agreement import TOLERANCE, compare, difference, run_onnxruntime

from isoform.compiler import zoo
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects import reference
from isoform.lowering.graph_to_onnx.exporter import to_model
from isoform.lowering.kernel_to_cpu.session import CpuSession

NAMES = [model.name for model in zoo.MODELS]
SMALL = {
    "resnet18": {"image": 40},
    "resnet50": {"image": 40},
    "resnext50": {"image": 40},
    "inception-v3": {"image": 80},
    "squeezenet": {"image": 50},
    "vgg19": {"image": 40},
    "mobilenet-v2": {"image": 40},
    "bert-base": {"sequence": 11, "layers": 2, "vocabulary": 1000},
    "dcgan": {},
    "infogan": {},
    "fsrcnn": {"image": 11},
    "csrnet": {"image": 40},
    "csrnet-backend": {"size": 7},
    "gcn": {"image": 32},
    "longformer": {"sequence": 50, "hidden": 48, "heads": 4, "width": 7, "dilation": 3},
    "nasnet-a": {"image": 40, "channels": 24, "cells": 2},
    "nasrnn": {"width": 72},
    "tensat-bert": {"sequence": 18, "layers": 3, "hidden": 72, "heads": 3},
    "resnet3d18": {"frames": 5, "image": 24},
    "drn-d-22": {"image": 40},
}
# Of the largest models the published size is tested with `-m slow`.
LARGE = {
    "csrnet", "gcn", "longformer", "nasnet-a", "tensat-bert", "resnet3d18", "drn-d-22", "vgg19",
    "inception-v3", "resnext50",
}  # fmt: skip
FULL = [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in NAMES]
# ONNX has no band product: the export computes full ones, 6 GB each at the published size.
FITTING = {"longformer": {"sequence": 2000, "width": 200}}


@pytest.mark.parametrize("name", FULL)
def test_a_zoo_model_agrees_with_onnxruntime_at_its_published_size(name: str) -> None:
    program = zoo.build(name, **FITTING.get(name, {}))
    feeds = draw_inputs(program)
    theirs = run_onnxruntime(to_model(program), feeds)
    compare(program, theirs, feeds).check()


@pytest.mark.parametrize("name", NAMES)
def test_a_small_zoo_model_agrees_with_its_float64_meaning(name: str) -> None:
    """Compiled here, and in onnxruntime as it is exported; the checker takes the export."""
    program = zoo.build(name, batch=2, **SMALL[name])
    feeds = draw_inputs(program, seed=1)
    session = CpuSession(place(program), threads=2)
    ours = session.run(feeds)
    session.close()
    assert session.native_calls == 1
    model = to_model(program)
    onnx.checker.check_model(model, full_check=True)
    theirs = run_onnxruntime(model.SerializeToString(), feeds)
    for key, exact in reference.run(program, feeds).items():
        for found in (ours[key], theirs[key]):
            assert difference(found, exact.astype(np.float32)) <= TOLERANCE
