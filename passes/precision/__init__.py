"""Lower the precision of products: half floats, or bytes over ranges found as a program runs."""

from .lower_precision import RULE, LowerPrecision
from .products import KINDS, products
from .switches import SWITCHES, with_switches

__all__ = ["KINDS", "RULE", "SWITCHES", "LowerPrecision", "products", "with_switches"]
