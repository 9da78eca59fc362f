"""The zoo is what the papers measured: parameters, multiply-adds, the same bytes from a seed."""

import itertools
import math

import numpy as np
import pytest

from isoform.compiler import zoo
from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.passes.cost.flops import program_macs

NAMES = [model.name for model in zoo.MODELS]


def infogan() -> tuple[int, float]:
    """Channels in, out, taps, input pixels of each transposed convolution (Natsu6767's file)."""
    layers = [(228, 448, 4, 1), (448, 256, 16, 4), (256, 128, 16, 16), (128, 64, 16, 64),
              (64, 3, 16, 256)]  # fmt: skip
    norms = 2 * (448 + 256)
    return sum(i * o * t for i, o, t, _ in layers) + norms, sum(
        i * o * t * p for i, o, t, p in layers
    )


def csrnet_backend() -> tuple[int, float]:
    widths = [512, 512, 512, 512, 256, 128, 64]
    weights = sum(9 * a * b for a, b in itertools.pairwise(widths))
    return weights, weights * 14 * 14


def csrnet() -> tuple[int, float]:
    """VGG-16's front at 112, 56, 28, 14 pixels a side, the dilated part, the 1x1."""
    front = [
        (3, 64, 112),
        (64, 64, 112),
        (64, 128, 56),
        (128, 128, 56),
        (128, 256, 28),
        (256, 256, 28),
        (256, 256, 28),
        (256, 512, 14),
        (512, 512, 14),
        (512, 512, 14),
    ]
    macs = sum(9 * a * b * side**2 for a, b, side in front)
    return 16_263_489, macs + csrnet_backend()[1] + 64 * 14 * 14


def gcn() -> tuple[int, float]:
    """Parts of the paper's ResNet50-GCN, written down from its description."""
    size = {1: 56, 2: 28, 3: 14, 4: 7}
    # ResNet-50's stem and stages 1 and 2: convolutions of (in, out, taps, side).
    convs = [(3, 64, 49, 112)]
    for blocks, width, inputs, side, before in ((3, 64, 64, 56, 56), (4, 128, 256, 28, 56)):
        for k in range(blocks):
            channels = inputs if k == 0 else 4 * width
            convs += [(channels, width, 1, before if k == 0 else side), (width, width, 9, side),
                      (width, 4 * width, 1, side)]  # fmt: skip
        convs.append((inputs, 4 * width, 1, side))
    norms = sum(2 * out for _, out, _, _ in convs)
    weights = sum(i * o * t for i, o, t, _ in convs) + norms
    macs = sum(i * o * t * side**2 for i, o, t, side in convs)
    for inputs, out, inner, k, side in ((512, 1024, 85, 5, 14), (1024, 2048, 128, 7, 7)):
        first = 2 * k * inner * (inputs + inner)
        later = 2 * k * inner * (out + inner)
        weights += first + later + 2 * (4 * 2 * inner + inner * out + 2 * out)
        weights += inputs * out + out + 2 * out  # downsampling has a bias
        macs += first * (2 * side) ** 2 + 5 * later * side**2
        macs += (inner * out * 6 + inputs * out) * side**2
    c = 21
    for stage, channels in ((1, 256), (2, 512), (3, 1024), (4, 2048)):
        weights += 2 * 11 * (channels * c + c * c) + 4 * c
        macs += 2 * 11 * (channels * c + c * c) * size[stage] ** 2
    refine, sides = 2 * 9 * c * c, [56, 28, 14, 7, 14, 28, 56, 112, 224]
    weights += 9 * (refine + 2 * c) + 5 * 9 * c * c + c * c + c
    macs += sum(refine * side**2 for side in sides) + c * c * 224**2
    macs += sum(9 * c * c * side**2 for side in (7, 14, 28, 56, 112))
    return weights, macs


def longformer() -> tuple[int, float]:
    weights = 5 * 512**2
    return weights + 2 * 512, 10000 * (weights + 2 * 2001 * 512)


def nasnet_a() -> tuple[int, float]:
    """Squeezes to c channels, then separable convolutions: depthwise of k^2 taps and 1x1."""

    def separable(c: int, k: int) -> int:
        return c * k * k + c * c

    weights, macs, c, inputs = 64 * 3 * 49, 64 * 3 * 49 * 112**2, 128, 64
    for side in (56, 28, 14):
        before = now = inputs
        for _ in range(5):
            cell = (before + now) * c + 5 * separable(c, 3)
            weights, macs = weights + cell, macs + cell * side**2
            before, now = now, 5 * c
        c *= 2
        squeezes = (before + now) * c
        rest = 2 * separable(c, 7) + 2 * separable(c, 5) + separable(c, 3)
        weights, macs = weights + squeezes + rest, macs + (4 * squeezes + rest) * (side // 2) ** 2
        inputs = 5 * c
    return weights, macs


BY_HAND = {
    # Where nothing is published: parameters and multiply-adds from the layers, without the graph.
    "dcgan": lambda: (3_576_704, 104_628_224),
    "infogan": infogan,
    "fsrcnn": lambda: (12_464 + 2 * (56 + 12 + 4 * 12 + 56) + 1, 12_464 * 32**2),
    "csrnet": csrnet,
    "csrnet-backend": csrnet_backend,
    "gcn": gcn,
    "longformer": longformer,
    "nasnet-a": nasnet_a,
    "nasrnn": lambda: (5 * 16 * 512**2 + 512, 5 * 16 * 512**2),
    "tensat-bert": lambda: (8 * 4 * 1024**2, 8 * (4 * 64 * 1024**2 + 2 * 16 * 64**3)),
}


@pytest.mark.parametrize("model", zoo.MODELS, ids=NAMES)
def test_parameters_are_exactly_the_published_ones(model: zoo.ZooModel) -> None:
    expected = model.parameters if model.parameters is not None else BY_HAND[model.name]()[0]
    assert zoo.parameters(zoo.build(model.name)) == expected


@pytest.mark.parametrize("model", zoo.MODELS, ids=NAMES)
def test_multiply_adds_are_within_one_per_cent_of_the_published_ones(model: zoo.ZooModel) -> None:
    macs = program_macs(zoo.build(model.name))
    if model.macs is not None:
        assert macs == pytest.approx(model.macs, rel=0.01)
    else:
        assert macs == BY_HAND[model.name]()[1]


def test_the_convolutions_of_fsrcnn_have_the_published_number_of_weights() -> None:
    """Table 1 of the paper counts neither biases nor slopes: 12464 for FSRCNN(56, 12, 4)."""
    program = zoo.build("fsrcnn")
    shapes = [w.shape for w in program.weights.values()]
    assert sum(math.prod(shape) for shape in shapes if len(shape) == 4) == 12_464


@pytest.mark.parametrize("model", zoo.MODELS, ids=NAMES)
def test_a_model_verifies_at_the_published_input_shape(model: zoo.ZooModel) -> None:
    program = zoo.build(model.name)
    program.module.verify()
    assert next(iter(program.inputs.values())).get_shape() == model.input


@pytest.mark.parametrize("model", zoo.MODELS, ids=NAMES)
def test_multiply_adds_grow_with_the_batch(model: zoo.ZooModel) -> None:
    assert program_macs(zoo.build(model.name, batch=3)) == 3 * program_macs(zoo.build(model.name))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(name: str, small_sizes) -> None:
    one, two, other = (zoo.build(name, seed=s, **small_sizes[name]) for s in (7, 7, 8))
    assert str(one.module) == str(two.module) == str(other.module)
    key = min(one.weights, key=lambda k: k.endswith("weight"))
    for k in (key, *list(one.weights)[:3]):
        assert one.weights.content_hash(k) == two.weights.content_hash(k)
        assert one.weights.content_hash(k) != other.weights.content_hash(k)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_sane_and_depend_on_the_input(name: str, small_sizes, inputs) -> None:
    program = zoo.build(name, batch=2, **small_sizes[name])
    for array in reference.run(program, inputs(program)).values():
        assert np.isfinite(array).all()
        assert 0.1 < array.std() < 10
        assert np.abs(array[0] - array[1]).max() > 0.05


def test_masked_positions_do_not_change_the_others(small_sizes, inputs) -> None:
    program = zoo.build("bert-base", **small_sizes["bert-base"])
    given = inputs(program)
    changed = {**given, "input_ids": given["input_ids"].copy()}
    changed["input_ids"][:, -2:] += 1
    a, b = (reference.run(program, g)["last_hidden_state"] for g in (given, changed))
    np.testing.assert_allclose(a[:, :-2], b[:, :-2], rtol=0, atol=1e-12)
    assert np.abs(a[:, -1] - b[:, -1]).max() > 0.1


@pytest.mark.parametrize(
    ("arguments", "sizes", "message"),
    [
        (("resnet19",), {}, "the zoo has no model 'resnet19' (did you mean 'resnet18'?)"),
        (("unheard-of",), {}, "the zoo has no model 'unheard-of' (the zoo has resnet18,"),
        (("resnet18",), {"imag": 3}, "resnet18 has no size 'imag' (did you mean 'image'?)"),
        (("resnet18",), {"batch": 0}, "resnet18: 'batch' is at least 1: found 0"),
        (("resnet18",), {"seed": -1}, "resnet18: the seed is at least 0: found -1"),
        (("vgg19",), {"image": 16}, "the window is larger than the padded image"),
        (("bert-base",), {"sequence": 513}, "the slice leaves dim 0 of extent 512"),
    ],
)
def test_bad_requests_get_one_line(arguments, sizes, message: str) -> None:
    with pytest.raises(UserError) as error:
        zoo.build(*arguments, **sizes)
    assert message in str(error.value)


def test_case_and_punctuation_of_a_name_do_not_matter() -> None:
    assert zoo.find("Inception_V3") is zoo.find("inception-v3")


def test_the_table_has_a_row_for_every_model() -> None:
    rows = [row.as_json() for row in zoo.table()]
    assert [row["name"] for row in rows] == NAMES
    known = [row for row in rows if row["published_parameters"] is not None]
    assert len(known) >= 11
    assert all(row["parameters"] == row["published_parameters"] for row in known)
