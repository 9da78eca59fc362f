"""ONNX's own node tests: every case is native and right, or in not_native.txt with a reason.

A program with kept nodes is compiled too: loop nests run them.

Operands that decide shapes (`axes`, `k`, a reshape's shape) are inputs in those tests; here they
are made initialisers, as they are in models.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import load_model_tests

import isoform
from isoform.dialects import reference
from isoform.dialects.arithmetic import Arithmetic
from isoform.dialects.errors import UnboundDims, UserError
from isoform.dialects.graph import OpaqueOp
from isoform.lowering.onnx_to_graph import importer
from isoform.lowering.onnx_to_graph.loading import load_model
from isoform.lowering.onnx_to_graph.table import TABLE
from isoform.lowering.onnx_to_graph.values import NotConstant

LIST = Path(__file__).with_name("not_native.txt")
# Cases about training, sequences, optionals and strings.
OUTSIDE = (
    "test_*adagrad*", "test_*adam*", "test_*momentum*", "test_training_dropout*", "test_*sequence*",
    "test_optional*", "test_identity_opt", "test_*_seq", "test_if_opt", "test_loop16_seq_none",
    "test_*string*", "test_strnormalizer*", "test_regex*", "test_ai_onnx_ml_label_encoder*",
)  # fmt: skip


@lru_cache
def cases() -> Mapping[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in collect_testcases(None)}


def array(value: object) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def flat(names: list[str], values: list[Any]) -> dict[str, Any]:
    """Arrays by name; those of a sequence are NAME.0, NAME.1, and so on. None is no value."""
    found: dict[str, Any] = {}
    for name, value in zip(names, map(array, values), strict=False):
        if isinstance(value, list):
            found |= {f"{name}.{k}": array(entry) for k, entry in enumerate(value)}
        elif value is not None:
            found[name] = value
    return found


def import_case(
    model: onnx.ModelProto, feeds: Mapping[str, Any], shapes: Mapping[str, Any]
) -> tuple[importer.Importer, Any]:
    """Import with the operands that must be constants as initialisers."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    frozen: set[str] = set()
    while True:
        try:
            found = importer.Importer(load_model(model))
            return found, found.program(shapes)
        except UnboundDims:  # one line asks for what the case feeds
            asked = {i.name for i in model.graph.input} & feeds.keys() - shapes.keys()
            if not asked:
                raise
            shapes = {**shapes, **{name: feeds[name].shape for name in asked}}
        except NotConstant as error:
            names = [error.value] if error.value in feeds else shape_like(feeds)
            names = [name for name in names if name not in frozen]
            if not names:
                raise
            frozen.update(names)
            model.graph.initializer.extend(numpy_helper.from_array(feeds[n], n) for n in names)
            left = [i for i in model.graph.input if i.name not in names]
            del model.graph.input[:]
            model.graph.input.extend(left)


def shape_like(feeds: Mapping[str, Any]) -> list[str]:
    arrays = {name: value for name, value in feeds.items() if isinstance(value, np.ndarray)}
    return [n for n, v in arrays.items() if v.ndim == 0 or (v.ndim == 1 and v.dtype.kind in "iu")]


def outcome(model: onnx.ModelProto, inputs: list[Any], outputs: list[Any], rtol: float) -> str:
    """native, opaque, refused; or what went wrong."""
    names = [i.name for i in model.graph.input]
    feeds = flat(names, inputs)
    lists = [(n, v) for n, v in zip(names, inputs, strict=False) if isinstance(v, list)]
    shapes: dict[str, Any] = {name: (len(value),) for name, value in lists}
    shapes |= {f"{n}.{k}": feeds[f"{n}.{k}"].shape for n, v in lists for k in range(len(v))}
    try:
        found, program = import_case(model, feeds, shapes)
        program.module.verify()
        given = {k: v for k, v in feeds.items() if k in program.inputs}
        quantised = "quantizelinear" in str([(n.name, n.op_type) for n in model.graph.node]).lower()
        # Ties of a quantiser's rounding are what a scale in float32 makes of them.
        how = Arithmetic.COMPUTED if quantised else Arithmetic.EXACT
        ways = [program.cut(reference.run(program, given, how))]
        if any(isinstance(op, OpaqueOp) for op in program.main.body.block.ops):
            with isoform.compile(program, threads=1, effort="quick") as session:
                ways.append(session(**given))
    except UserError as error:
        return "wrong: an error of several lines" if "\n" in str(error) else "refused"
    results = flat([o.name for o in model.graph.output], outputs)
    for got in ways:
        if extra := got.keys() ^ results.keys():
            return f"wrong: outputs {sorted(extra)}"
        for name, wanted in results.items():
            wrong = difference(got[name], np.asarray(wanted), rtol)
            if wrong:
                return f"wrong: {name}: {wrong}"
    return "opaque" if any(o.kind == "opaque" for o in found.outcomes) else "native"


def difference(got: np.ndarray, wanted: np.ndarray, rtol: float) -> str:
    if got.shape != wanted.shape:
        return f"shape {got.shape}, not {wanted.shape}"
    half = wanted.dtype.itemsize == 2 and wanted.dtype.kind in "fV"
    rtol, atol = (1e-2, 1e-2) if half else (max(rtol, 1e-3), 1e-5)
    close = np.isclose(
        got.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True
    )
    return "" if close.all() else f"{np.sum(~close)} of {close.size} elements"


def listed() -> Iterator[tuple[str, str]]:
    """(pattern, kind) of each line of the list."""
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, kind, reason = line.split(maxsplit=2)
            assert kind in ("native", "opaque", "refused", "random"), line
            assert reason
            yield pattern, kind


def expected(name: str, lines: list[tuple[str, str]]) -> str:
    return next((kind for pattern, kind in lines if fnmatchcase(name, pattern)), "native")


def sweep(names: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        case = cases()[name]
        results = [outcome(case.model, *data, case.rtol) for data in case.data_sets]
        found[name] = next((r for r in results if r != "native"), "native")
    return found


def test_every_node_case_is_native_and_right_or_listed() -> None:
    lines = list(listed())
    found = sweep(list(cases()))
    failures = [
        f"{name}: {result}, expected {expected(name, lines)}"
        for name, result in found.items()
        if result != expected(name, lines) and expected(name, lines) != "random"
    ]
    assert not failures, "\n".join(failures)
    inside = [n for n in found if not any(fnmatchcase(n, pattern) for pattern in OUTSIDE)]
    counts = Counter(found[n] for n in inside)
    assert counts["native"] >= 0.75 * len(inside), counts


def test_no_line_of_the_list_is_dead() -> None:
    for pattern, _ in listed():
        assert any(fnmatchcase(name, pattern) for name in cases()), pattern


@pytest.mark.parametrize("kind", ["simple", "pytorch-converted", "pytorch-operator"])
def test_the_models_that_come_with_onnx(kind: str) -> None:
    """Old exports (opset 6 and so on); refused are only the sequences, strings and gradients."""
    wrong: list[str] = []
    for case in load_model_tests(kind=kind):
        folder = Path(case.model_dir)
        model = onnx.load(folder / "model.onnx")
        for data in sorted(folder.glob("test_data_set_*")):
            inputs, outputs = (read(data, stem) for stem in ("input", "output"))
            result = outcome(model, inputs, outputs, case.rtol)
            allowed = any(word in case.name for word in ("sequence", "strnorm", "gradient"))
            if result != "native" and not (allowed and result == "refused"):
                wrong.append(f"{case.name}: {result}")
    assert not wrong, "\n".join(wrong)


def read(folder: Path, stem: str) -> list[Any]:
    files = sorted(folder.glob(f"{stem}_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    return [onnx.TensorProto.FromString(p.read_bytes()) for p in files]


# --- a wrong converter is noticed ---


def swapped(node: Any) -> list[Any]:
    return [node.build.sub(*node.together(node[1], node[0]))]


@pytest.mark.parametrize(
    ("op_type", "wrong", "case"),
    [
        ("Sub", swapped, "test_sub"),
        ("Softmax", TABLE["LogSoftmax"], "test_softmax_axis_1"),
        ("MaxPool", TABLE["AveragePool"], "test_maxpool_2d_default"),
        ("Transpose", TABLE["Identity"], "test_transpose_default"),
        ("ReduceMax", TABLE["ReduceMin"], "test_reduce_max_keepdims_random"),
    ],
)
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, op_type: str, wrong: Any, case: str
) -> None:
    assert sweep([case])[case] == "native"
    monkeypatch.setitem(TABLE, op_type, wrong)
    assert sweep([case])[case].startswith("wrong")
