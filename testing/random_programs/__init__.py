"""Random programs, valid by construction, for authors of passes, lowerings and rules.

    program = random_graph(seed=7, ops=12)
    inputs = random_inputs(program, seed=7)
    small = reduce(program, fails)          # fails: Callable[[Program], bool]
    path = write_reproducer(small, folder)

`random_graph` draws from every family of the graph dialect, `random_scope_program` draws scopes
that no graph op makes. `Agreement` compares a target's results with the reference, except where
rounding alone decides the result.
"""

from .agreement import Agreement, Mismatch
from .graphs import FAMILIES, random_graph
from .inputs import random_inputs, random_weights
from .reducing import reduce, write_reproducer
from .scopes import random_scope_program

__all__ = [
    "FAMILIES",
    "Agreement",
    "Mismatch",
    "random_graph",
    "random_inputs",
    "random_scope_program",
    "random_weights",
    "reduce",
    "write_reproducer",
]
