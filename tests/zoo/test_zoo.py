"""The zoo is what the papers measured: parameters, multiply-adds, the same bytes from a seed."""

import numpy as np
import pytest

from isoform.compiler import zoo
from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.passes.flops import program_macs

NAMES = [model.name for model in zoo.MODELS]


@pytest.mark.parametrize("model", zoo.MODELS, ids=NAMES)
def test_parameters_are_exactly_the_published_ones(model: zoo.Model) -> None:
    assert zoo.parameters(zoo.build(model.name)) == model.parameters


@pytest.mark.parametrize("model", zoo.MODELS, ids=NAMES)
def test_multiply_adds_are_within_one_per_cent_of_the_published_ones(model: zoo.Model) -> None:
    macs = program_macs(zoo.build(model.name))
    assert macs == pytest.approx(model.macs if model.macs is not None else 104_628_224, rel=0.01)


@pytest.mark.parametrize("model", zoo.MODELS, ids=NAMES)
def test_a_model_verifies_at_the_published_input_shape(model: zoo.Model) -> None:
    program = zoo.build(model.name)
    program.module.verify()
    assert next(iter(program.inputs.values())).get_shape() == model.input


@pytest.mark.parametrize("model", zoo.MODELS, ids=NAMES)
def test_multiply_adds_grow_with_the_batch(model: zoo.Model) -> None:
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
        assert 0.2 < array.std() < 10
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
    assert all(row["parameters"] == row["published_parameters"] for row in rows)
