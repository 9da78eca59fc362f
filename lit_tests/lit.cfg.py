import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import lit.formats

# What stands for `isoform-opt` on the PATH of tests: it gives its words, environment, folder and
# streams to the server, and ends as the call did.
CLIENT = """#!{python} -SIE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    call = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()])
    socket.send_fds(server, [call.encode()], [0, 1, 2])
    status = server.recv(1)
sys.exit(status[0] if status else 134)
"""
here = Path(__file__).resolve().parent
config.name = "isoform"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(here)
config.test_exec_root = str(here.parent / "build" / "lit")

# isoform, isoform-opt, filecheck and python are those of the environment lit itself runs in.
tools = os.path.dirname(sys.executable)
config.environment["PATH"] = os.pathsep.join((tools, config.environment["PATH"]))
config.environment["PYTHONUTF8"] = "1"
# lit forwards few variables: without this one a second checkout would test the installed one.
if "PYTHONPATH" in os.environ:
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
config.substitutions.append(("%examples", str(here.parent / "examples")))

# Importing isoform-opt takes longer than most tests: one process imports it, and forks for each
# call. It ends when its standard input does, so with lit.
if hasattr(os, "fork"):
    folder = Path(tempfile.mkdtemp(prefix="isoform-lit-"))
    ends_with_lit, _ = os.pipe()  # lit keeps the end for writing open
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "calls"))
        listener.listen(64)
        subprocess.Popen(
            [sys.executable, str(here / "opt_server.py"), str(listener.fileno()), str(folder)],
            stdin=ends_with_lit,
            pass_fds=[listener.fileno()],
            start_new_session=True,  # a Ctrl-C is lit's
            env={**os.environ, **config.environment},
        )
    client = folder / "isoform-opt"
    client.write_text(CLIENT.format(python=sys.executable, path=str(folder / "calls")))
    client.chmod(0o755)
    config.environment["PATH"] = os.pathsep.join((str(folder), config.environment["PATH"]))
