"""When `optimize` returns the input in place of what it found."""

from __future__ import annotations

import pytest

from isoform.compiler.search.acceptance import is_refused
from isoform.compiler.search.records import Comparison


@pytest.mark.parametrize(
    "kind, after, refused",
    [
        ("measured", 0.9, False),
        ("measured", 1.005, False),  # two copies of one program differ by as much
        ("measured", 1.02, True),
        ("modelled", 1.0, False),
        ("modelled", 1.005, True),  # a model has no noise
    ],
)
def test_a_slower_result_is_refused(kind: str, after: float, refused: bool) -> None:
    comparison = Comparison(before=2.0, after=after, tuned_input=1.0, kind=kind)
    assert is_refused(comparison, changed=True) == refused


def test_what_was_not_compared_is_refused_where_it_changed() -> None:
    comparison = Comparison(1.0, 1.0, 1.0, "modelled", missed="time")
    assert is_refused(comparison, changed=True)
    assert not is_refused(comparison, changed=False)
