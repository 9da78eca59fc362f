"""Indices that are data are checked in the dim that each of them indexes."""

import numpy as np
import pytest

from isoform.dialects.errors import UserError
from isoform.dialects.index_range import check_node, check_range


@pytest.mark.parametrize(
    ("indices", "size", "said"),
    [
        (np.array(5), 5, "here: index 5 is out of range: expected -5 to 4, as the dim's size is 5"),
        (np.array([0, 4, 5, 9]), 5, "here: index 5 at [2] is out of range: expected -5 to 4"),
        (np.array([[-5, 4], [-6, 0]]), 5, "here: index -6 at [1, 0] is out of range"),
        (np.array([0]), 0, "here: index 0 at [0] is out of range: the dim is empty"),
    ],
)
def test_an_index_out_of_range_is_named_with_its_position(indices, size: int, said: str) -> None:
    with pytest.raises(UserError) as caught:
        check_range(indices, size, "here")
    assert str(caught.value).startswith(said)


def test_indices_of_nodes_are_checked_in_the_dim_that_each_indexes() -> None:
    x = np.zeros((2, 3, 4))
    for op_type, ints, good, bad in (
        ("Gather", {"axis": 1}, [2, -3], [3]),
        ("GatherElements", {"axis": 2}, [[[3, -4]]], [[[4]]]),
        ("Scatter", {"axis": -1}, [[[3]]], [[[-5]]]),
        ("ScatterElements", {}, [[[1]]], [[[2]]]),
        ("GatherND", {}, [[1, 2, 3]], [[1, 3, 0]]),
        ("GatherND", {"batch_dims": 1}, [[2, 3], [0, 0]], [[0, 0], [0, 4]]),
        ("ScatterND", {}, [[1, 2]], [[2, 0]]),
        ("ScatterND", {}, [[1, 2, -4]], [[0, 0, -5]]),
    ):
        check_node(op_type, ints, [x, np.array(good)], "here")
        with pytest.raises(UserError, match="is out of range"):
            check_node(op_type, ints, [x, np.array(bad)], "here")
    check_node("GatherND", {}, [x, np.zeros((1, 4), int)], "here")  # too deep: its own fault
    check_node("Gather", {"axis": 3}, [x, np.array([9])], "here")
    check_node("Other", {}, [x, np.array([9])], "here")
    check_node("Gather", {}, [None, np.array([9])], "here")
