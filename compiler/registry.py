"""The one registry of isoform's dialects, passes and targets: one line registers one.

A reference `"passes.fold_constants:FoldConstants"` names a module of this package and what it
exports. Nothing is imported before it is used, so a driver starts without egglog, onnx, llvmlite or
z3.
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import cast

from xdsl.context import Context
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

from ..dialects.errors import UserError, one_line
from .plugin import extended

PACKAGE = __name__.rpartition(".compiler")[0]

DialectFactory = Callable[[], Dialect]
PassFactory = Callable[[], type[ModulePass]]
TargetFactory = Callable[[], type[Target]]


def _load(reference: str) -> object:
    """Import what `"module:NAME"` (relative to this package) names."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(f"{PACKAGE}.{module}"), attribute)


def _dialect(reference: str) -> DialectFactory:
    return lambda: cast(Dialect, _load(reference))


def _pass(reference: str) -> PassFactory:
    return lambda: cast(type[ModulePass], _load(reference))


def _target(reference: str) -> TargetFactory:
    return lambda: cast(type[Target], _load(reference))


DIALECTS: tuple[tuple[str, DialectFactory], ...] = (
    ("graph", _dialect("dialects.graph:GRAPH")),
    ("control", _dialect("dialects.control:CONTROL")),
    ("algebra", _dialect("dialects.algebra:ALGEBRA")),
    ("kernel", _dialect("dialects.kernel:KERNEL")),
    ("nest", _dialect("dialects.nest:NEST")),
)

PASSES: tuple[tuple[str, PassFactory], ...] = (
    ("fold-batch-norm", _pass("passes.fold_batch_norm:FoldBatchNorm")),
    ("fold-constants", _pass("passes.fold_constants:FoldConstants")),
    ("infer-shapes", _pass("passes.infer_shapes:InferShapes")),
    ("specialize-dims", _pass("passes.specialize_dims:SpecializeDims")),
    ("bound-dims", _pass("passes.bounding.bound_dims:BoundDims")),
    ("graph-substitute", _pass("passes.substitution.graph_substitute:GraphSubstitute")),
    ("graph-apply-rule", _pass("passes.substitution.graph_substitute:GraphApplyRule")),
    ("graph-saturate", _pass("passes.saturation.graph_saturate:GraphSaturate")),
    ("hoist-invariants", _pass("passes.hoist_invariants:HoistInvariants")),
    ("unroll-loops", _pass("passes.unroll_loops:UnrollLoops")),
    ("merge-equal", _pass("passes.merge_equal:MergeEqual")),
    ("graph-to-algebra", _pass("lowering.graph_to_algebra:GraphToAlgebra")),
    ("integer-products", _pass("passes.integer_products:IntegerProducts")),
    ("lower-precision", _pass("passes.precision:LowerPrecision")),
    ("algebra-inline-casts", _pass("passes.copies.algebra_inline_casts:AlgebraInlineCasts")),
    ("widen-half-products", _pass("passes.convolution.widen_half_products:WidenHalfProducts")),
    ("widen-half-results", _pass("passes.convolution.widen_half_results:WidenHalfResults")),
    ("algebra-inline-copies", _pass("passes.copies.algebra_inline_copies:AlgebraInlineCopies")),
    ("algebra-gather-sums", _pass("passes.copies.algebra_gather_sums:AlgebraGatherSums")),
    ("algebra-sink-copies", _pass("passes.copies.algebra_sink_copies:AlgebraSinkCopies")),
    ("algebra-pull-copies", _pass("passes.copies.algebra_pull_copies:AlgebraPullCopies")),
    ("algebra-drop-unread", _pass("passes.copies.algebra_drop_unread:AlgebraDropUnread")),
    ("algebra-inline-parts", _pass("passes.copies.algebra_inline_parts:AlgebraInlineParts")),
    ("algebra-join-parts", _pass("passes.fusion.algebra_join_parts:AlgebraJoinParts")),
    ("algebra-derive", _pass("passes.derivation.derive:AlgebraDerive")),
    ("algebra-mutate", _pass("passes.partial.mutate:AlgebraMutate")),
    ("algebra-name-scopes", _pass("passes.derivation.name_scopes:AlgebraNameScopes")),
    ("algebra-apply-rule", _pass("passes.derivation.apply_rule:AlgebraApplyRule")),
    ("algebra-to-kernel", _pass("lowering.algebra_to_kernel:AlgebraToKernel")),
    ("fuse-kernels", _pass("passes.fusion.fuse_kernels:FuseKernels")),
    ("fast-math", _pass("passes.fast_math:FastMath")),
    ("fuse-attention", _pass("passes.fusion.fuse_attention:FuseAttention")),
    ("fuse-tiles", _pass("passes.fusion.fuse_tiles:FuseTiles")),
    ("assign-layouts", _pass("passes.assign_layouts:AssignLayouts")),
    ("winograd", _pass("passes.convolution.winograd:Winograd")),
    ("transposed-product", _pass("passes.convolution.transposed_product:TransposedProduct")),
    ("tune", _pass("passes.tuning:Tune")),
    ("use-tuned", _pass("passes.tuning.use_tuned:UseTuned")),
    ("share-buffers", _pass("passes.fusion.share_buffers:ShareBuffers")),
    ("join-buffers", _pass("passes.fusion.join_buffers:JoinBuffers")),
    ("skip-padding", _pass("passes.bounding.skip_padding:SkipPadding")),
    ("plan-memory", _pass("passes.plan_memory:PlanMemory")),
    ("kernel-to-nest", _pass("lowering.kernel_to_nest.convert:KernelToNest")),
    ("inline-calls", _pass("passes.inline_calls:InlineCalls")),
    ("verify-equivalence", _pass("passes.verify_equivalence:VerifyEquivalence")),
)

TARGETS: tuple[tuple[str, TargetFactory], ...] = (
    ("cuda", _target("compiler.targets.cuda:CudaTarget")),
    ("nest-cuda", _target("compiler.targets.nest:NestCudaTarget")),
    ("nest-llvm", _target("compiler.targets.nest:NestLlvmTarget")),
)

OWN_PASSES = frozenset(name for name, _ in PASSES)
UNIVERSE = Universe(all_dialects=dict(DIALECTS), all_passes=dict(PASSES), all_targets=dict(TARGETS))


def multiverse() -> Universe:
    """Join isoform's dialects and passes with those of xDSL and of all installed plug-in packages.

    Plug-in files in use (plugin.py) are included.

    Raises: UserError where an installed plug-in cannot be imported or takes a name twice.
    """
    found = _installed(tuple(sys.path), entry_points)
    joined = Universe(
        all_dialects=found.all_dialects | UNIVERSE.all_dialects,
        all_passes=found.all_passes | UNIVERSE.all_passes,
        all_targets=found.all_targets | UNIVERSE.all_targets,
        all_frontends=found.all_frontends,
    )
    return extended(joined)


@lru_cache(maxsize=8)
def _installed(paths: tuple[str, ...], search: Callable[..., object]) -> Universe:
    """What xDSL and installed packages define. Looked for once: it reads every package's metadata.

    Args:
        paths, search: where packages are, and what finds them: with others the answer differs.
    """
    try:
        return Universe.get_multiverse()
    except (Exception, SystemExit) as error:
        raise UserError(
            f"an installed plug-in cannot be used: {one_line(f'{type(error).__name__}: {error}')}",
            where=_broken_plugin(),
            hint="uninstall it or repair it",
        ) from error


def _broken_plugin() -> str:
    """Which package fails, found by loading each alone."""
    for entry in entry_points(group="xdsl.universe"):
        try:
            entry.load()
        except (Exception, SystemExit):  # noqa: BLE001 - the same again
            package = f" of {entry.dist.name}" if entry.dist is not None else ""
            return f"entry point '{entry.name} = {entry.value}'{package}"
    return "entry points xdsl.universe"


def make_context(universe: Universe | None = None) -> Context:
    """Build a context that knows, and loads on first use, every dialect of `universe` (default:
    all)."""
    context = Context()
    for name, factory in (universe or multiverse()).all_dialects.items():
        context.register_dialect(name, factory)
    return context
