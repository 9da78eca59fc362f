"""The numeric ops of ai.onnx.ml: trees, linear and kernel machines, scalers."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper

from support.random_nodes.draw import Draw, Generator, Sample

DOMAIN = "ai.onnx.ml"


def _matrix(d: Draw) -> np.ndarray:
    return d.array("float32", [d.int(1, 4), d.int(2, 4)])


def _trees(d: Draw, features: int, leaves: int) -> dict[str, list[Any]]:
    """Nodes of some random trees; each leaf votes for all classes or targets.

    What one means that no leaf votes for is left open: docs/onnx-disagreements.md.
    """
    found: dict[str, list[Any]] = {
        name: []
        for name in (
            "nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_modes",
            "nodes_truenodeids", "nodes_falsenodeids", "nodes_missing_value_tracks_true",
            "leaf_tree", "leaf_node", "leaf_id", "leaf_weight",
        )
    }  # fmt: skip
    mode = d.pick(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
    for tree in range(d.int(1, 3)):
        waiting, count = [(0, 0)], 1
        while waiting:
            name, depth = waiting.pop(0)
            inner = depth < 1 or (depth < 3 and d.flag())
            found["nodes_treeids"].append(tree)
            found["nodes_nodeids"].append(name)
            found["nodes_featureids"].append(d.int(0, features - 1) if inner else 0)
            found["nodes_values"].append(d.float(-2, 2) if inner else 0.0)
            found["nodes_modes"].append(mode if inner else "LEAF")
            found["nodes_truenodeids"].append(count if inner else 0)
            found["nodes_falsenodeids"].append(count + 1 if inner else 0)
            found["nodes_missing_value_tracks_true"].append(0)
            if inner:
                waiting += [(count, depth + 1), (count + 1, depth + 1)]
                count += 2
                continue
            for leaf in range(leaves):
                found["leaf_tree"].append(tree)
                found["leaf_node"].append(name)
                found["leaf_id"].append(leaf)
                found["leaf_weight"].append(d.float(-1, 1))
    return found


def tree_regressor(d: Draw) -> Sample:
    x, targets = _matrix(d), d.int(1, 2)
    trees = _trees(d, x.shape[1], targets)
    given: dict[str, Any] = {k: v for k, v in trees.items() if k.startswith("nodes")}
    given |= {
        "target_treeids": trees["leaf_tree"], "target_nodeids": trees["leaf_node"],
        "target_ids": trees["leaf_id"], "target_weights": trees["leaf_weight"],
        "n_targets": targets,
    }  # fmt: skip
    if d.flag(0.4):
        given["base_values"] = [d.float(-1, 1) for _ in range(targets)]
    if d.flag():
        given["aggregate_function"] = d.pick(["SUM", "AVERAGE", "MIN", "MAX"])
    return Sample("TreeEnsembleRegressor", [x], given, d.pick([1, 3]), domain=DOMAIN)


def tree_classifier(d: Draw) -> Sample:
    x, classes = _matrix(d), d.int(3, 4)
    trees = _trees(d, x.shape[1], classes)
    given: dict[str, Any] = {k: v for k, v in trees.items() if k.startswith("nodes")}
    given |= {
        "class_treeids": trees["leaf_tree"], "class_nodeids": trees["leaf_node"],
        "class_ids": trees["leaf_id"], "class_weights": trees["leaf_weight"],
        "classlabels_int64s": [int(v) for v in d.rng.permutation(9)[:classes]],
    }  # fmt: skip
    if d.flag():
        given["post_transform"] = d.pick(["NONE", "SOFTMAX", "LOGISTIC"])
    return Sample("TreeEnsembleClassifier", [x], given, d.pick([1, 3]), (True, True), domain=DOMAIN)


def ensemble(d: Draw) -> Sample:
    """TreeEnsemble of opset 5: one tree of one split, tensors for attributes."""
    x = _matrix(d)
    given = {
        "nodes_splits": numpy_helper.from_array(np.asarray([d.float(-1, 1)], np.float32)),
        "nodes_featureids": [d.int(0, x.shape[1] - 1)],
        "nodes_modes": numpy_helper.from_array(np.asarray([d.pick([0, 1, 2, 3])], np.uint8)),
        "nodes_truenodeids": [0], "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1], "nodes_falseleafs": [1],
        "leaf_targetids": [0, 0], "tree_roots": [0], "n_targets": 1,
        "leaf_weights": numpy_helper.from_array(d.array("float32", [2])),
        "aggregate_function": d.pick([0, 1, 2, 3]),
    }  # fmt: skip
    return Sample("TreeEnsemble", [x], given, 5, domain=DOMAIN)


def linear_regressor(d: Draw) -> Sample:
    x, targets = _matrix(d), d.int(1, 2)
    given: dict[str, Any] = {
        "coefficients": [d.float(-1, 1) for _ in range(targets * x.shape[1])],
        "targets": targets,
    }
    if d.flag():
        given["intercepts"] = [d.float(-1, 1) for _ in range(targets)]
    return Sample("LinearRegressor", [x], given, 1, domain=DOMAIN)


def linear_classifier(d: Draw) -> Sample:
    x, classes = _matrix(d), d.int(3, 4)
    given: dict[str, Any] = {
        "coefficients": [d.float(-1, 1) for _ in range(classes * x.shape[1])],
        "intercepts": [d.float(-1, 1) for _ in range(classes)],
        "classlabels_ints": [int(v) for v in d.rng.permutation(9)[:classes]],
        "post_transform": d.pick(["NONE", "SOFTMAX", "LOGISTIC"]),
    }
    return Sample("LinearClassifier", [x], given, 1, (True, True), domain=DOMAIN)


def svm_regressor(d: Draw) -> Sample:
    x, count = _matrix(d), d.int(1, 3)
    given: dict[str, Any] = {
        "coefficients": [d.float(-1, 1) for _ in range(count)],
        "support_vectors": [d.float(-1, 1) for _ in range(count * x.shape[1])],
        "n_supports": count,
        "rho": [d.float(-1, 1)],
        "kernel_type": d.pick(["LINEAR", "POLY", "RBF", "SIGMOID"]),
        "kernel_params": [d.float(0.1, 1), d.float(0, 1), 2.0],
    }
    return Sample("SVMRegressor", [x], given, 1, domain=DOMAIN)


def svm_classifier(d: Draw) -> Sample:
    x, classes = _matrix(d), d.int(2, 3)
    per_class = d.ints(1, 2, classes)
    count, pairs = sum(per_class), classes * (classes - 1) // 2
    given: dict[str, Any] = {
        # One is negative: onnxruntime takes another threshold where all are positive.
        "coefficients": [-1.0, *[d.float(-1, 1) for _ in range((classes - 1) * count - 1)]],
        "support_vectors": [d.float(-1, 1) for _ in range(count * x.shape[1])],
        "vectors_per_class": per_class,
        "rho": [d.float(-1, 1) for _ in range(pairs)],
        "kernel_type": d.pick(["LINEAR", "POLY", "RBF", "SIGMOID"]),
        "kernel_params": [d.float(0.1, 1), d.float(0, 1), 2.0],
        "classlabels_ints": [int(v) for v in d.rng.permutation(9)[:classes]],
    }
    return Sample("SVMClassifier", [x], given, 1, (True, d.flag()), domain=DOMAIN)


def scaler(d: Draw) -> Sample:
    x = _matrix(d)
    wide = x.shape[1] if d.flag() else 1
    given = {
        "offset": [d.float(-1, 1) for _ in range(wide)],
        "scale": [d.float(0.5, 2) for _ in range(wide)],
    }
    return Sample("Scaler", [x], given, 1, domain=DOMAIN)


def normalizer(d: Draw) -> Sample:
    return Sample(
        "Normalizer", [_matrix(d)], {"norm": d.pick(["MAX", "L1", "L2"])}, 1, domain=DOMAIN
    )


def binarizer(d: Draw) -> Sample:
    return Sample("Binarizer", [_matrix(d)], {"threshold": d.float(-1, 1)}, 1, domain=DOMAIN)


def imputer(d: Draw) -> Sample:
    x = np.round(_matrix(d))
    given = {
        "imputed_value_floats": [d.float(5, 9)],
        "replaced_value_float": d.pick([1.0, float("nan")]),
    }
    x = np.where(d.rng.random(x.shape) < 0.2, np.nan, x).astype(np.float32) if d.flag() else x
    return Sample("Imputer", [x], given, 1, domain=DOMAIN)


def extractor(d: Draw) -> Sample:
    x = _matrix(d)
    positions = np.asarray([d.ints(0, x.shape[1] - 1, d.int(1, 3))], np.int64)
    return Sample("ArrayFeatureExtractor", [x, positions], {}, 1, domain=DOMAIN)


def one_hot_encoder(d: Draw) -> Sample:
    x = d.array("int64", d.shape(1, 2), 0, 5)
    return Sample("OneHotEncoder", [x], {"cats_int64s": [0, 2, 3, 4], "zeros": 1}, 1, domain=DOMAIN)


def label_encoder(d: Draw) -> Sample:
    x = d.array("int64", d.shape(1, 2), 0, 5)
    given = {"keys_int64s": [0, 2, 3], "values_floats": [d.float(-1, 1) for _ in range(3)],
             "default_float": 7.0}  # fmt: skip
    return Sample("LabelEncoder", [x], given, d.pick([2, 4]), domain=DOMAIN)


def feature_vectorizer(d: Draw) -> Sample:
    rows, wide = d.int(1, 3), d.ints(1, 3, 2)
    inputs = [d.array("float32", [rows, n]) for n in wide]
    return Sample("FeatureVectorizer", inputs, {"inputdimensions": wide}, 1, domain=DOMAIN)


GENERATORS: dict[str, Generator] = {
    "ArrayFeatureExtractor": extractor,
    "Binarizer": binarizer,
    "FeatureVectorizer": feature_vectorizer,
    "Imputer": imputer,
    "LabelEncoder": label_encoder,
    "LinearClassifier": linear_classifier,
    "LinearRegressor": linear_regressor,
    "Normalizer": normalizer,
    "OneHotEncoder": one_hot_encoder,
    "SVMRegressor": svm_regressor,
    "SVMClassifier": svm_classifier,
    "Scaler": scaler,
    "TreeEnsemble": ensemble,
    "TreeEnsembleClassifier": tree_classifier,
    "TreeEnsembleRegressor": tree_regressor,
}
