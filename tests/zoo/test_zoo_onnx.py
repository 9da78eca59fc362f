"""The zoo's models at their published sizes are exported as ONNX: onnxruntime agrees.

Small ones are compared in tests/models/test_zoo_models.py.
"""

import numpy as np
import onnx
import onnxruntime
import pytest

from isoform.compiler import zoo
from isoform.dialects import reference
from isoform.dialects.program import Program
from isoform.lowering.graph_to_onnx.exporter import to_model

NAMES = [model.name for model in zoo.MODELS]
# ONNX has no band product: the export computes full ones, 6 GB each at the published size.
SIZES_THAT_FIT = {"longformer": {"sequence": 1000, "width": 100}}


def compare(program: Program, feeds) -> None:
    """onnxruntime agrees with the float64 reference to 1e-4 of each output's maximum."""
    model = to_model(program)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    found = session.run(list(program.outputs), dict(feeds))
    expected = reference.run(program, feeds)
    for name, array in zip(program.outputs, found, strict=True):
        limit = 1e-4 * np.abs(expected[name]).max()
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=limit)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_full_models_agree_with_onnxruntime(name: str, inputs) -> None:
    program = zoo.build(name, **SIZES_THAT_FIT.get(name, {}))
    compare(program, inputs(program))
