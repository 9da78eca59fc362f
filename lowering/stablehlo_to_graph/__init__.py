"""StableHLO text (what jax.export and jax.jit(...).lower write) -> graph dialect.

`text.py` reads the text into plain data, `importer.py` walks over it, `table.py` names the
converter of each op. Nothing here needs jax.
"""

from .text import is_stablehlo

__all__ = ["is_stablehlo"]
