import os
import sys
from pathlib import Path

import lit.formats

config.name = "isoform"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = str(Path(__file__).resolve().parents[1] / "build" / "lit")

# isoform, isoform-opt, filecheck and python are those of the environment lit itself runs in.
tools = os.path.dirname(sys.executable)
config.environment["PATH"] = os.pathsep.join((tools, config.environment["PATH"]))
config.environment["PYTHONUTF8"] = "1"
# lit forwards few variables: without this one a second checkout would test the installed one.
if "PYTHONPATH" in os.environ:
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
config.substitutions.append(("%examples", str(Path(__file__).resolve().parents[1] / "examples")))
