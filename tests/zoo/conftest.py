"""Inputs for a zoo model, drawn from a seed."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from isoform.dialects.program import Program

Feeds = Mapping[str, np.ndarray]


def draw_inputs(program: Program, seed: int = 0) -> Feeds:
    rng = np.random.default_rng(seed)
    made = {}
    for name, type_ in program.inputs.items():
        shape = type_.get_shape()
        if name == "attention_mask":
            made[name] = (np.arange(shape[1]) < shape[1] - 2) * np.ones(shape, np.int64)
        elif name == "input_ids":
            made[name] = rng.integers(0, 1000, shape)
        else:
            made[name] = rng.standard_normal(shape, np.float32)
    return made


@pytest.fixture
def inputs() -> Callable[[Program], Feeds]:
    return draw_inputs


@pytest.fixture
def small_sizes() -> Mapping[str, Mapping[str, int]]:
    """Sizes at which a model is evaluated in a second or two."""
    return {
        "resnet18": {"image": 32},
        "resnet50": {"image": 32},
        "resnext50": {"image": 32},
        "inception-v3": {"image": 75},
        "squeezenet": {"image": 48},
        "vgg19": {"image": 32},
        "mobilenet-v2": {"image": 32},
        "bert-base": {"sequence": 8, "layers": 2, "vocabulary": 1000},
        "dcgan": {},
        "infogan": {},
        "fsrcnn": {"image": 12},
        "csrnet": {"image": 80},
        "csrnet-backend": {"size": 10},
        "gcn": {"image": 32},
        "longformer": {"sequence": 40, "hidden": 32, "heads": 4, "width": 5, "dilation": 3},
        "nasnet-a": {"image": 32, "channels": 16, "cells": 2},
        "nasrnn": {"width": 64},
        "tensat-bert": {"sequence": 16, "layers": 3, "hidden": 64, "heads": 4},
        "resnet3d18": {"frames": 4, "image": 24},
        "drn-d-22": {"image": 32},
    }
