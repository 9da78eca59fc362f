"""Why rows of benchmarks/operators.py are below 0.97, by name."""

_CALL = "the call: 8 us of Python around the kernel, 4 in onnxruntime"
_COPIES = "copies of the image to channels last and back"
_MEMORY = "one pass over memory, as there; not examined further"
_LINES = "rows of 200 and 150 floats are no whole cache lines; not examined further"
_HEAP = "each element is compared with the heap's root, one by one"
_EXP = "exp is within 1 unit in the last place, with gradual underflow"

REASONS: dict[str, str] = {
    "conv 7x7 s2 3-64 @224": f"{_COPIES}, a fifth of the time",
    "conv 3x3 dilation 2 256-256 @28": "the direct kernel; no Winograd for dilated windows",
    "conv 3x3 3-16 @32 (CIFAR)": _CALL,
    "conv 1x1 64-256 @56": "3.2 MB of results, stored past the caches",
    "depthwise 5x5 s2 576 @14": f"{_COPIES}: rows of 7 fill no vector",
    "transposed 2x2 s2 256-128 @28 (UNet)": f"{_COPIES}, a third of the time",
    "product 4x4096x4096": "bound by memory: 64 MB of weights; not examined further",
    "product 37x129x515, odd": f"columns that fill no vector; {_CALL}",
    "product 4096x256x3": "three of sixteen lanes are used: no dot products of rows yet",
    "products 12 of 197x64x197": "rows of 197 floats start anywhere in a cache line",
    "keys of a cache 32 of 1x64x2048": "keys are transposed a panel at a time for one query",
    "Softmax axis -1 [12, 197, 197]": "exp, sum and division are three passes over a row",
    "Softmax axis -1 [1, 1000]": _CALL,
    "InstanceNormalization [1, 64, 128, 128]": "four kernels: rows of two dims are not merged",
    "ReduceSum of all 4194304": _MEMORY,
    "CumSum axis 1 [8, 500, 33]": "the 33rd neighbour has a strip of its own",
    "TopK 10 [64, 50257]": _HEAP,
    "TopK 100 [1, 8400]": _HEAP,
    "Tanh [1048576]": "within 1.5 units in the last place: a polynomial and an exp",
    "Sigmoid [1, 64, 160, 160]": _EXP,
    "Exp [1048576]": _EXP,
    "silu [1, 64, 160, 160]": _EXP,
    "gelu [197, 3072]": "erf is within 1.5 units in the last place, and the file divides",
    "Pow 2.2 [1048576]": "powf of the C library, lane by lane",
    "Mul of a column [768, 4096]": _MEMORY,
    "Transpose [0, 2, 1] [64, 200, 150]": _LINES,
    "Transpose [1, 0, 2] [64, 200, 150]": _LINES,
    "Transpose [1, 2, 0] [64, 200, 150]": _LINES,
    "Transpose [2, 0, 1] [64, 200, 150]": _LINES,
    "Concat axis 0 2 of [64, 80, 100]": _MEMORY,
    "Concat axis 1 2 of [64, 80, 100]": _MEMORY,
    "Expand [1, 8, 1, 128, 64] 4 times (GQA)": _CALL,
    "Pad reflect 3 [1, 32, 128, 128]": "six kernels: parts of each dim are made, then joined",
    "Pad edge 3 [1, 32, 128, 128]": "two kernels, one for each dim",
    "Gather of 128 words [30522, 768]": _CALL,
    "Gather of int64 [4096, 64] 512": _CALL,
    "GatherElements axis 1 [1024, 1024]": "three passes: steps of the axis, sums, elements",
    "GatherND [256, 256, 64] 4096": "positions are computed and stored before rows are read",
    "ScatterND add 4096 rows [10000, 64]": "rows are added one element at a time",
    "MaxPool 5x5 s1 256 @20": "25 taps at each place, in rows of 20",
    "GridSample 32 @64": "taps are read one by one for each channel",
}
