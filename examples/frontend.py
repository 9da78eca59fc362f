"""A frontend in thirty lines: a tiny language of layers, read into an isoform program.

Run it: `python examples/frontend.py`
"""

import numpy as np

import isoform
from isoform.dialects import reference
from isoform.dialects.types import shape_of

SOURCE = """
input x 1 8
dense 16 relu
dense 4 softmax
"""


def read(source: str, seed: int = 0) -> isoform.Program:
    """One line a layer: `input NAME ROWS COLUMNS`, `dense UNITS ACTIVATION`."""
    build, rng, value = isoform.GraphBuilder(), np.random.default_rng(seed), None
    for number, line in enumerate(source.strip().splitlines()):
        match line.split():
            case ["input", name, rows, columns]:
                value = build.input(name, (int(rows), int(columns)))
            case ["dense", units, activation] if value is not None:
                shape = (shape_of(value)[1], int(units))
                data = rng.standard_normal(shape, np.float32) / np.float32(shape[0]) ** 0.5
                with build.at(f"layer {number}"):
                    value = build.matmul(value, build.weight(f"layer{number}.weight", data))
                    properties = {"axis": 1} if activation == "softmax" else {}
                    value = build.op(activation, value, **properties)
            case _:
                raise isoform.UserError(f"no such layer: '{line}'", where=f"line {number + 1}")
    if value is None:
        raise isoform.UserError("the source has no layer")
    build.output("y", value)
    return build.build()


if __name__ == "__main__":
    program = read(SOURCE)
    print(program.module)
    print(reference.run(program, {"x": np.ones((1, 8))})["y"])
