"""Run a graph-level program in torch, op by op or compiled, as a yardstick for `bench`.

`OPS` has one line for each op. Only the caller imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue

from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp, GraphOp, WeightOp
from ...dialects.program import Program, return_of, where
from ...dialects.types import Array, element_of, to_numpy
from ...dialects.weights_only import depends_on_weights_only, is_source

Torch: TypeAlias = Any
Step: TypeAlias = "Callable[[Torch, GraphOp, Sequence[Any]], Any]"


def eager(program: Program, feeds: Mapping[str, Array]) -> Callable[[], list[Array]]:
    """A function that runs the program on `feeds` in torch.

    Raises:
        UserError: an op has no line in `OPS`.
    """
    import torch  # pyright: ignore[reportMissingImports]

    function, tensors = torch_function(program), _tensors(torch, program, feeds)

    def run() -> list[Array]:
        with torch.inference_mode():
            return [value.numpy() for value in function(*tensors)]

    return run


def compiled(program: Program, feeds: Mapping[str, Array]) -> Callable[[], list[Array]]:
    """As `eager`, but through torch.compile (inductor) with weights frozen, compiled at once.

    Raises:
        UserError: an op has no line in `OPS`.
    """
    import torch  # pyright: ignore[reportMissingImports]
    import torch._inductor.config as inductor  # pyright: ignore[reportMissingImports]
    from torch.fx.experimental.proxy_tensor import make_fx  # pyright: ignore[reportMissingImports]

    tensors = _tensors(torch, program, feeds)
    with torch.no_grad(), inductor.patch(freezing=True):
        function = torch.compile(make_fx(torch_function(program))(*tensors))
        function(*tensors)

    def run() -> list[Array]:
        with torch.no_grad():
            return [value.numpy() for value in function(*tensors)]

    return run


def eager_module(
    module: Any, program: Program, feeds: Mapping[str, Array]
) -> Callable[[], list[Array]]:
    """A function that runs a library's module, which has the program's inputs and outputs."""
    import torch  # pyright: ignore[reportMissingImports]

    call = _module_call(torch, module, program, feeds)

    def run() -> list[Array]:
        with torch.inference_mode():
            return [value.numpy() for value in call(module)]

    return run


def compiled_module(
    module: Any, program: Program, feeds: Mapping[str, Array]
) -> Callable[[], list[Array]]:
    """As `eager_module`, through torch.compile (inductor) with weights frozen, compiled at once."""
    import torch  # pyright: ignore[reportMissingImports]
    import torch._inductor.config as inductor  # pyright: ignore[reportMissingImports]

    call = _module_call(torch, module, program, feeds)
    with torch.no_grad(), inductor.patch(freezing=True):
        function = torch.compile(module)
        call(function)

    def run() -> list[Array]:
        with torch.no_grad():
            return [value.numpy() for value in call(function)]

    return run


def _module_call(
    torch: Torch, module: Any, program: Program, feeds: Mapping[str, Array]
) -> Callable[[Any], list[Any]]:
    """A function that calls the module (or its compiled form): transformers' use names."""
    tensors = {name: torch.from_numpy(feeds[name].copy()) for name in program.input_names}
    if not hasattr(module, "config"):
        return lambda function: [function(*tensors.values())]

    def call(function: Any) -> list[Any]:
        found = function(**tensors)
        return [found[name] for name in program.output_names]

    return call


def torch_function(program: Program) -> Callable[..., list[Any]]:
    """The program as a function of tensors, its weights parameters that need no gradient.

    Raises:
        UserError: an op has no line in `OPS`.
    """
    import torch  # pyright: ignore[reportMissingImports]

    fixed: dict[SSAValue, Any] = {}
    steps: list[tuple[GraphOp, Step]] = []
    known: set[SSAValue] = set()
    for op in list(program.main.body.block.ops)[:-1]:
        if is_source(op):
            fixed[op.results[0]] = torch.from_numpy(_data(op, program).copy())
            known.update(op.results)
        elif depends_on_weights_only(op, known):
            fixed |= _results(op, _step(op)(torch, _graph(op), [fixed[v] for v in op.operands]))
            known.update(op.results)
        else:
            steps.append((_graph(op), _step(op)))
    fixed = {v: torch.nn.Parameter(data, requires_grad=False) for v, data in fixed.items()}
    arguments = list(program.main.body.block.args)
    outputs = list(return_of(program.module).arguments)

    def function(*tensors: Any) -> list[Any]:
        values = fixed | dict(zip(arguments, tensors, strict=True))
        for op, step in steps:
            values |= _results(op, step(torch, op, [values[v] for v in op.operands]))
        return [values[v] for v in outputs]

    return function


def _tensors(torch: Torch, program: Program, feeds: Mapping[str, Array]) -> list[Any]:
    return [torch.from_numpy(feeds[name]) for name in program.input_names]


def _data(op: Operation, program: Program) -> Array:
    if isinstance(op, WeightOp):
        return program.weights[op.key]
    assert isinstance(op, ConstantOp)
    return op.array()


def _graph(op: Operation) -> GraphOp:
    if not isinstance(op, GraphOp):
        raise UserError("torch can only be measured on graph ops", where=where(op))
    return op


def _step(op: Operation) -> Step:
    step = OPS.get(op.name.removeprefix("graph."))
    if step is None:
        raise UserError("torch cannot be measured: no torch counterpart here", where=where(op))
    return step


def _results(op: Operation, found: Any) -> dict[SSAValue, Any]:
    values = list(found) if len(op.results) > 1 else [found]
    return dict(zip(op.results, values, strict=True))


# --- ops ----------------------------------------------------------------------------------------


def _call(name: str) -> Step:
    """An op that is the torch function of the same or the given name."""
    return lambda torch, op, args: getattr(torch, name)(*args)


def _padded_to_even(torch: Torch, op: GraphOp, x: Any, fill: float) -> tuple[Any, list[int]]:
    """Pad x by the difference of begin and end pads; return the remaining even pads."""
    pads = op.ints("pads")
    half = len(pads) // 2
    common = [min(pads[k], pads[k + half]) for k in range(half)]
    extra: list[int] = []
    for k in reversed(range(half)):
        extra += [pads[k] - common[k], pads[k + half] - common[k]]
    return (torch.nn.functional.pad(x, extra, value=fill) if any(extra) else x), common


def _conv(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    x, pads = _padded_to_even(torch, op, args[0], 0.0)
    call = getattr(torch.nn.functional, f"conv{len(pads)}d")
    bias = args[2] if len(args) > 2 else None
    groups = op.value("groups")
    return call(x, args[1], bias, op.ints("strides"), pads, op.ints("dilations"), groups)


def _conv_transpose(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    pads = op.ints("pads")
    half = len(pads) // 2
    if pads[:half] != pads[half:]:
        raise UserError("torch has no uneven pads here", where=where(op))
    call = getattr(torch.nn.functional, f"conv_transpose{half}d")
    bias, extra = args[2] if len(args) > 2 else None, op.ints("output_padding")
    rest = (op.ints("strides"), pads[:half], extra, op.value("groups"), op.ints("dilations"))
    return call(args[0], args[1], bias, *rest)


def _max_pool(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    x, pads = _padded_to_even(torch, op, args[0], float("-inf"))
    call = getattr(torch.nn.functional, f"max_pool{len(pads)}d")
    sizes = (op.ints("kernel"), op.ints("strides"), pads, op.ints("dilations"))
    return call(x, *sizes, op.value("ceil_mode"))


def _avg_pool(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    pads = op.ints("pads")
    half = len(pads) // 2
    call = getattr(torch.nn.functional, f"avg_pool{half}d")
    flags = (op.value("ceil_mode"), op.value("count_include_pad"))
    return call(args[0], op.ints("kernel"), op.ints("strides"), pads[:half], *flags)


def _matmul(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    flags = (op.value("transpose_a"), op.value("transpose_b"))
    a, b = (x.mT if flag else x for x, flag in zip(args, flags, strict=True))
    return torch.matmul(a, b)


def _broadcast(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    shape, dims = op.ints("shape"), op.ints("dims")
    sizes = dict(zip(dims, args[0].shape, strict=True))
    return args[0].reshape([sizes.get(k, 1) for k in range(len(shape))]).expand(shape)


def _slice(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    x = args[0]
    parts = zip(op.ints("starts"), op.ints("sizes"), op.ints("steps"), strict=True)
    for dim, (start, size, step) in enumerate(parts):
        index = torch.arange(start, start + step * size, step) if size else torch.arange(0)
        x = x.narrow(dim, start, size) if step == 1 else x.index_select(dim, index)
    return x


def _pad(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    pads = op.ints("pads")
    half = len(pads) // 2
    flat = [p for k in reversed(range(half)) for p in (pads[k], pads[k + half])]
    return torch.nn.functional.pad(args[0], flat, value=op.value("fill"))


def _gather(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    axis, (x, indices) = op.value("axis"), args
    flat = x.index_select(axis, indices.reshape(-1) % x.shape[axis])
    return flat.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


def _cast(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    return args[0].to(getattr(torch, str(to_numpy(element_of(op.results[0])))))


def _reduce(name: str) -> Step:
    return lambda torch, op, args: getattr(torch, name)(
        args[0], dim=op.ints("axes"), keepdim=op.value("keep_dims")
    )


def _layer_norm(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    x, *rest = args
    shape = list(x.shape[op.value("axis") :])
    return torch.nn.functional.layer_norm(x, shape, *rest, eps=op.value("epsilon"))


def _batch_norm(torch: Torch, op: GraphOp, args: Sequence[Any]) -> Any:
    x, scale, bias, mean, variance = args
    rest = (mean, variance, scale, bias)
    return torch.nn.functional.batch_norm(x, *rest, eps=op.value("epsilon"))


_SAME = (
    *("add", "sub", "mul", "div", "neg", "abs", "exp", "log", "sqrt", "tanh", "erf", "floor"),
    *("ceil", "sin", "cos", "relu", "sigmoid", "reciprocal", "pow", "where"),
)
OPS: dict[str, Step] = {name: _call(name) for name in _SAME} | {
    "softplus": lambda torch, op, args: torch.nn.functional.softplus(*args),
    "max": _call("maximum"),
    "min": _call("minimum"),
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "matmul": _matmul,
    "broadcast": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "gather": _gather,
    "cast": _cast,
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "reduce_sum": _reduce("sum"),
    "reduce_mean": _reduce("mean"),
    "reduce_max": _reduce("amax"),
    "reduce_min": _reduce("amin"),
    "reshape": lambda torch, op, args: args[0].reshape(op.ints("shape")),
    "transpose": lambda torch, op, args: args[0].permute(op.ints("perm")),
    "concat": lambda torch, op, args: torch.cat(args, op.value("axis")),
    "split": lambda torch, op, args: torch.split(args[0], op.ints("sizes"), op.value("axis")),
    "softmax": lambda torch, op, args: torch.softmax(args[0], op.value("axis")),
    "log_softmax": lambda torch, op, args: torch.log_softmax(args[0], op.value("axis")),
    "clip": lambda torch, op, args: torch.clamp(args[0], op.value("min"), op.value("max")),
    "leaky_relu": lambda torch, op, args: torch.nn.functional.leaky_relu(
        args[0], op.value("alpha")
    ),
}
