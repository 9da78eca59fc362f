"""Whole models are compiled as users compile them: other tests verify after every pass."""

import pytest


@pytest.fixture(autouse=True)
def as_users_run_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify pipelines before their first and after their last pass only."""
    monkeypatch.setenv("ISOFORM_DEBUG", "0")
