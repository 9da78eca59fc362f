"""What holds for all tests."""

import gc
import os
import signal
from pathlib import Path

import pytest


class PlainRoot:
    """The root as a plain folder: pytest imports a package by its folder's name, `isoform-main`."""

    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """A collector of the root; None of any other folder."""
        root = Path(__file__).parents[1]
        return pytest.Dir.from_parent(parent, path=path) if path == root else None


def pytest_configure(config: pytest.Config) -> None:
    """Verify programs after every pass, and let Ctrl-C reach the commands that tests start.

    A shell's background job ignores it, and children inherit that; a handler, unlike ignoring, is
    reset to the default when a child starts.
    """
    config.pluginmanager.register(PlainRoot())  # a conftest's own hooks are not asked for the root
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("ISOFORM_DEBUG", "1")


def pytest_collection_finish() -> None:
    """Never look for garbage among what the collection of tests made."""
    gc.collect()
    gc.freeze()
