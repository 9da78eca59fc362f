"""A process that compiles modules for another: `python -P -m isoform....compile_worker ISA`.

llvmlite compiles one module at a time in a process, so several processes compile in parallel. Text
comes on stdin and objects go to stdout, each as 8 bytes of length (little-endian) and the bytes; an
empty object says that the module does not compile. The process ends when stdin does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import BinaryIO

from .isa import Isa
from .jit import compile_object


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


def isa_text(isa: Isa) -> str:
    """Write an instruction set as the worker's argument."""
    return json.dumps(vars(isa))


def main(argument: str) -> None:
    """Compile what comes in until nothing does."""
    isa = Isa(**json.loads(argument))
    source = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as target:
        os.dup2(2, 1)  # nothing else may write between the messages
        while (text := receive(source)) is not None:
            try:
                data = compile_object(text.decode(), isa)
            except RuntimeError:
                data = b""
            send(target, data)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    try:
        main(sys.argv[1])
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)
