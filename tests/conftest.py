"""What holds for all tests."""

import gc
import os
import signal


def pytest_configure() -> None:
    """Verify programs after every pass, and let Ctrl-C reach the commands that tests start.

    A shell's background job ignores it, and children inherit that; a handler, unlike ignoring, is
    reset to the default when a child starts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("ISOFORM_DEBUG", "1")


def pytest_collection_finish() -> None:
    """Never look for garbage among what the collection of tests made."""
    gc.collect()
    gc.freeze()
