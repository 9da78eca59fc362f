"""The constant tensors that rules may name, and their values.

ones(shape=[..])                                 every element 1
identity_matrix(size=n)                          x = matmul(x, identity_matrix)
identity_kernel(channels=c, kernel=[r, s])       x = conv(x, .., groups=c), odd taps, same pads
pool_kernel(channels=c, kernel=[r, s])           1/(r s) everywhere: the mean, by a conv
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...dialects.errors import UserError
from ...dialects.types import Array
from .rule import CONSTANTS


def constant_array(op: str, attributes: Mapping[str, Any]) -> Array:
    """The value of a constant of a rule, in float64.

    Raises:
        UserError: there is no such constant.
    """
    match op:
        case "ones":
            return np.ones(tuple(attributes["shape"]))
        case "identity_matrix":
            return np.eye(attributes["size"])
        case "identity_kernel":
            array = np.zeros((attributes["channels"], 1, *attributes["kernel"]))
            array[:, 0, *(n // 2 for n in attributes["kernel"])] = 1.0
            return array
        case "pool_kernel":
            kernel = tuple(attributes["kernel"])
            return np.full((attributes["channels"], 1, *kernel), 1.0 / np.prod(kernel))
        case _:
            raise UserError(f"'{op}' is no constant of a rule", expected=", ".join(CONSTANTS))
