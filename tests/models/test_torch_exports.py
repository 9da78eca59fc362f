"""Exports of torchvision and transformers with dynamic axes bound by shape, against onnxruntime.

tests/fixtures/ holds the graphs without their weights; scripts/export_fixtures.py makes them.
"""

from pathlib import Path

import numpy as np
import pytest
from support.agreement import agree, watching
from support.seeded import read_fixture

from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import import_onnx

FIXTURES = Path(__file__).parent.parent / "fixtures"
EXPORTERS = ["torchscript", "dynamo"]
Shape = tuple[int, ...]


def _fixture(name: str, exporter: str):
    return read_fixture(FIXTURES / f"{name}-{exporter}.onnx.gz")


def _masked(shape: Shape) -> dict[str, np.ndarray]:
    """The last two tokens of every row are padding."""
    mask = np.ones(shape, np.int64)
    mask[:, -2:] = 0
    return {"attention_mask": mask}


def test_fixtures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in FIXTURES.glob("*.onnx.gz")}
    assert len(sizes) == 8
    assert max(sizes.values()) < 300_000


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("shape", [(1, 3, 224, 224), (2, 3, 64, 96)])
def test_resnet18_agrees(exporter: str, shape: Shape) -> None:
    agree(_fixture("resnet18", exporter), {"image": shape}).check()


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("shape", [(1, 16), (3, 9), (1, 3)])
def test_a_tiny_bert_agrees(exporter: str, shape: Shape) -> None:
    found = agree(_fixture("bert-tiny", exporter), {"input_ids": shape}, _masked(shape))
    assert list(found.differences) == ["hidden", "pooled"]
    found.check()


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_intermediate_tensors_of_a_tiny_bert_agree(exporter: str) -> None:
    model = _fixture("bert-tiny", exporter)
    softmax = [n.output[0] for n in model.graph.node if n.op_type == "Softmax"]
    assert softmax
    with watching(model, 0):  # what the softmax reads
        agree(model, {"input_ids": (2, 16)}, _masked((2, 16))).check()


@pytest.mark.parametrize(
    "exporter", ["dynamo", pytest.param("torchscript", marks=pytest.mark.slow)]
)
def test_bert_base_agrees(exporter: str) -> None:
    agree(_fixture("bert-base", exporter), {"input_ids": (1, 128)}, _masked((1, 128))).check()


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_an_unbound_dim_is_an_error_that_names_the_flag(exporter: str) -> None:
    with pytest.raises(UserError, match="add --shape image=1,3,1,1"):
        import_onnx(_fixture("resnet18", exporter))
