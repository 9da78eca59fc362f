"""What holds for all tests."""

import gc
import os
import signal
from pathlib import Path

import pytest

from isoform.compiler.garbage import LEAST_OBJECTS


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


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> object:
    """Run everything above one large frame.

    CPython keeps frames in blocks of 16 KiB, and gives a block back to the system when the last
    frame in it returns: a loop whose calls begin a new block asks the system twice a call. The
    frame of `above` takes more than 4 MiB, so its block has 8; the rest holds the calls from there.
    """
    me = config.pluginmanager.get_plugin(__file__)
    caller = config.pluginmanager.subset_hook_caller("pytest_cmdline_main", [me])

    def above() -> object:
        return caller(config=config)

    above.__code__ = above.__code__.replace(co_stacksize=530_000)
    return above()


def pytest_collection_finish() -> None:
    """Never look for garbage among what collecting the tests made; else as rarely as `isoform`."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(LEAST_OBJECTS, *gc.get_threshold()[1:])
