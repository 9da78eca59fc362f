"""Answer calls of `isoform-opt` by forks of one process that has imported it, until stdin ends.

`lit.cfg.py` starts it: `opt_server.py DESCRIPTOR FOLDER`, a listening socket and what to remove.
"""

import json
import os
import select
import shutil
import signal
import socket
import sys
from pathlib import Path

from isoform.compiler.opt import main


def answer(call: socket.socket) -> int:
    """Run one call in this process."""
    data, streams, _, _ = socket.recv_fds(call, 1 << 20, 3)
    words, environment, folder = json.loads(data)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = words
    try:
        status = main(words)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def serve(listener: socket.socket) -> None:
    """Fork for each call, until standard input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while sys.stdin not in (ready := select.select([listener, sys.stdin], [], [])[0]):
        assert ready
        call, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            call.send(bytes([answer(call)]))
            os._exit(0)
        call.close()


if __name__ == "__main__":
    place = Path(sys.argv[2])
    try:
        serve(socket.socket(fileno=int(sys.argv[1])))
    finally:
        shutil.rmtree(place)
