"""Pipelines, as tuples of passes with the reason for each place."""

LOWER_TO_KERNEL: tuple[str, ...] = (
    "graph-to-algebra",
    # Before matching, so that transposes and broadcasts are strides of the kernels that read them.
    "algebra-inline-copies",
    # After inlining, which leaves copies of equal reads and unread copies behind.
    "cse",
    "dce",
    # Before matching: the kernels of products are float32's.
    "widen-half-products",
    "algebra-to-kernel",
    "fuse-kernels",
    # After fusion: a layout is decided once per value that is still stored.
    "assign-layouts",
)

# What runs needs places in memory too; text for people is clearer without them.
PLACE: tuple[str, ...] = (
    # Last of what changes layouts: halos are final (`tune` may widen them), room is only added.
    "join-buffers",
    "plan-memory",
)

# What only the CPU has a kernel for: after tuning, for that looks at products one by one.
FOR_CPU: tuple[str, ...] = ("fuse-attention", "fuse-tiles")

# With `--fast-math`, last of all: it marks the kernels that there are then.
FAST_MATH: tuple[str, ...] = ("fast-math",)
