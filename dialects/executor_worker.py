"""A process that computes for another: `python -P -m isoform.dialects.executor_worker`.

Requests come on stdin and answers go to stdout, each as 8 bytes of length (little-endian) and the
pickled bytes: module and name of a function and its argument; its result and None, or None and the
exception. The process ends when stdin does.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from importlib import import_module
from typing import Any, BinaryIO


def send(stream: BinaryIO, data: bytes) -> None:
    """Write one message."""
    stream.write(len(data).to_bytes(8, "little") + data)
    stream.flush()


def receive(stream: BinaryIO) -> bytes | None:
    """Read one message; None where the stream ends."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    size = int.from_bytes(head, "little")
    data = stream.read(size)
    return data if len(data) == size else None


def answer(request: bytes) -> bytes:
    """Do what is asked for; what cannot be pickled is told as a RuntimeError."""
    module, name, item = pickle.loads(request)
    try:
        found: tuple[Any, Exception | None] = getattr(import_module(module), name)(item), None
    except Exception as error:  # noqa: BLE001 - it is raised where the work was asked for
        found = None, error
    try:
        return pickle.dumps(found)
    except Exception:  # noqa: BLE001 - whatever an object raises that is not made to be pickled
        return pickle.dumps((None, RuntimeError(repr(found))))


def main() -> None:
    """Answer what comes in until nothing does."""
    source = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as target:
        os.dup2(2, 1)  # nothing else may write between the messages
        while (request := receive(source)) is not None:
            send(target, answer(request))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)
