"""Pipelines, as tuples of passes with the reason for each place."""

LOWER_TO_KERNEL: tuple[str, ...] = (
    # At the graph level, where an op is still one.
    "integer-products",
    "hoist-invariants",
    "graph-to-algebra",
    # Before matching, so that transposes and broadcasts become strides of their readers' kernels.
    "algebra-inline-copies",
    # After inlining, which leaves copies of equal reads and unread copies behind.
    "merge-equal",
    "dce",
    # After unread copies are gone, which would read all that they copy.
    "algebra-drop-unread",
    # Before fusion, where a scope of all of a product is its epilogue.
    "algebra-join-parts",
    # After joins, which make epilogues of what else would be read in parts.
    "algebra-inline-parts",
    # Before matching: kernels of products take float32.
    "widen-half-products",
    # After products are widened: what follows them is their epilogue.
    "widen-half-results",
    # Before matching: kernels of products take bytes as they are.
    "algebra-inline-casts",
    "algebra-to-kernel",
    "fuse-kernels",
    # After fusion: a layout is decided once for each value that is still stored.
    "assign-layouts",
)

# Passes of LOWER_TO_KERNEL for the CPU alone: the kernels of others read any layout, pad by
# comparisons, and store half floats.
LAYOUTS: tuple[str, ...] = ("assign-layouts", "widen-half-results")

# What no kernel has to copy. Halos are final by now (`tune` may widen them).
BUFFERS: tuple[str, ...] = (
    # Before joins: parts of one buffer that are joined again are read by one kernel.
    "share-buffers",
    "join-buffers",
)

# A kernel is a call there: many parts are copied by one each.
CPU_BUFFERS: tuple[str, ...] = ("share-buffers", "join-buffers{copies=true}")

# Runtimes need buffers placed in memory; text for people is clearer without places.
PLACE: tuple[str, ...] = (*BUFFERS, "plan-memory")
PLACE_ON_CPU: tuple[str, ...] = (*CPU_BUFFERS, "skip-padding", "plan-memory")

# Kernels that only the CPU has. After tuning, which looks at products one by one.
FOR_CPU: tuple[str, ...] = ("fuse-attention", "fuse-tiles")

# With `--fast-math`, last of all: it marks the final kernels.
FAST_MATH: tuple[str, ...] = ("fast-math",)
