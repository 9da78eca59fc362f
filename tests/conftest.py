"""What holds for all tests."""

import gc
import os
import signal

# Python looks for garbage after 700 new objects: programs make millions, few of them in cycles.
NEW_OBJECTS = 20_000


def pytest_configure() -> None:
    """Verify programs after every pass, and let Ctrl-C reach the commands that tests start.

    A shell's background job ignores it, and children inherit that; a handler, unlike ignoring, is
    reset to the default when a child starts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("ISOFORM_DEBUG", "1")


def pytest_collection_finish() -> None:
    """Look for garbage rarely, and never among what the collection of tests made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
