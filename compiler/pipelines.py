"""Pipelines, as tuples of passes with the reason for each place."""

LOWER_TO_KERNEL: tuple[str, ...] = (
    "graph-to-algebra",
    # Before matching, so that transposes and broadcasts become strides of their readers' kernels.
    "algebra-inline-copies",
    # After inlining, which leaves copies of equal reads and unread copies behind.
    "cse",
    "dce",
    # Before matching: kernels of products take float32.
    "widen-half-products",
    "algebra-to-kernel",
    "fuse-kernels",
    # After fusion: a layout is decided once for each value that is still stored.
    "assign-layouts",
)

# Runtimes need buffers placed in memory; text for people is clearer without places.
PLACE: tuple[str, ...] = (
    # Last of the passes that change layouts: halos are final (`tune` may widen them).
    "join-buffers",
    "plan-memory",
)

# Kernels that only the CPU has. After tuning, which looks at products one by one.
FOR_CPU: tuple[str, ...] = ("fuse-attention", "fuse-tiles")

# With `--fast-math`, last of all: it marks the final kernels.
FAST_MATH: tuple[str, ...] = ("fast-math",)
