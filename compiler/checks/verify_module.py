"""Verify a module: that definitions dominate uses, then every operation's own rules.

xDSL's `verify()` accepts a use before its definition and does not name the operation at fault;
this does both. The walk is iterative over the operations of a block: its cost is linear, and long
chains are no problem.
"""

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from ...dialects.algebra import ExternOp
from ...dialects.errors import UserError, one_line, raise_all
from ...dialects.kernel import CallOp
from ...dialects.op_reference import verify_extern

# Operations whose regions are graphs, and operations that may name later ones: order has no
# meaning there, by definition of their dialects (an e-class holds terms that use the class itself).
GRAPH_REGIONS = frozenset({"equivalence.graph", "hw.module"})
UNORDERED_USERS = frozenset({"equivalence.class", "equivalence.const_class"})

# Operations whose rules only look at their own types and attributes, and at being last in a block.
# There are many operations and few kinds: one of each kind is checked.
ALIKE = ("arith.", "math.", "graph.", "algebra.yield", "kernel.yield")

# Errors that one verification reports at most.
MOST_ERRORS = 20

LocationOf = Callable[[Operation], str | None]


def no_location(_: Operation) -> None:
    """Know the location of no operation."""


class VerifiedOps:
    """Remembers which operations verified, so that only changed ones are checked again.

    Give one to each verification of the same module: between two passes most of it is unchanged.
    """

    def __init__(self) -> None:
        self._states: dict[Operation, tuple[object, ...]] = {}
        self._now: dict[Operation, tuple[object, ...]] = {}
        self._checked: set[Operation] = set()
        self._alike: set[tuple[object, ...]] = set()

    def is_new(self, op: Operation) -> bool:
        """Whether an operation must be checked; inner operations are asked first."""
        state = self._now[op] = _state(op)
        inside = (child for region in op.regions for block in region.blocks for child in block.ops)
        if self._states.get(op) == state and self._checked.isdisjoint(inside):
            return False
        self._checked.add(op)
        return not (op.name.startswith(ALIKE) and self._is_like_another(op))

    def _is_like_another(self, op: Operation) -> bool:
        """Whether an operation of the same kind, types and attributes verified before."""
        if op.regions or op.successors:
            return False
        alike = _kind(op)
        if alike in self._alike:
            return True
        self._alike.add(alike)
        return False

    def failed(self, op: Operation) -> None:
        """Forget that an operation was asked for: it does not verify, nor do those alike."""
        self._alike.discard(_kind(op))

    def finish(self) -> None:
        """Keep what was asked for as verified; forget the rest."""
        self._states, self._now = self._now, {}
        self._checked.clear()


def _kind(op: Operation) -> tuple[object, ...]:
    """What the rules of the operations in `ALIKE` look at."""
    operands = tuple(value.type for value in op.operands)
    results = tuple(result.type for result in op.results)
    properties, attributes = (tuple(d.items()) for d in (op.properties, op.attributes))
    return (type(op), op.next_op is None, operands, results, properties, attributes)


def _state(op: Operation) -> tuple[object, ...]:
    """Everything that the rules of an operation may look at; inner operations by identity."""
    return (
        op.parent,
        op.next_op is None,
        tuple(op.operands),
        tuple(value.type for value in op.operands),
        tuple(result.type for result in op.results),
        dict(op.properties),
        dict(op.attributes),
        tuple(op.successors),
        tuple(
            (block, tuple(arg.type for arg in block.args), tuple(block.ops))
            for region in op.regions
            for block in region.blocks
        ),
    )


def verify_module(
    module: ModuleOp, location_of: LocationOf = no_location, verified: VerifiedOps | None = None
) -> None:
    """Check the whole module, or the operations not in `verified`.

    Raises: UserError naming the first operation at fault, at its location if that is known; its
        `also` holds the next ones, up to `MOST_ERRORS`.
    """
    verified = VerifiedOps() if verified is None else verified
    verify_dominance(module, location_of)
    errors: list[UserError] = []
    around: set[Operation] = set()  # ops around a fault: what they say may only follow from it
    for op in module.walk(region_first=True):
        if len(errors) == MOST_ERRORS:
            break
        if op in around:
            around |= {parent} if (parent := op.parent_op()) is not None else set()
        elif verified.is_new(op):
            try:
                _verify_op(op, location_of)
            except UserError as error:
                errors.append(error)
                verified.failed(op)
                around |= {parent} if (parent := op.parent_op()) is not None else set()
    raise_all(errors)
    verified.finish()


def _verify_op(op: Operation, location_of: LocationOf) -> None:
    """Check one operation's own rules and its blocks, but not nested operations."""
    try:
        for region in op.regions:
            for block in region.blocks:
                _verify_block(op, region, block)
        op.verify(verify_nested_ops=False)
        if isinstance(op, (ExternOp, CallOp)):
            verify_extern(op)
    except (VerifyException, ValueError) as error:
        message = one_line(str(error)) or "the operation does not verify"
        raise UserError(f"'{op.name}': {message}", where=location_of(op)) from error


def _verify_block(op: Operation, region: Region, block: Block) -> None:
    """Check the links of a block, and that it is not empty where a terminator is needed."""
    if block.parent is not region or any(child.parent is not block for child in block.ops):
        raise VerifyException("a nested block or operation has a wrong parent")
    if block.is_empty and len(region.blocks) == 1 and not op.has_trait(NoTerminator):
        raise VerifyException("a block that needs a terminator is empty")


def verify_dominance(root: Operation, location_of: LocationOf = no_location) -> None:
    """Check that each operand is defined before its use on every path to the use.

    Raises: UserError naming the first use that is not, with the next ones in its `also`.
    """
    errors: list[UserError] = []
    order = {op: index for index, op in enumerate(root.walk())}
    dominators: dict[Region, dict[Block, Block]] = {}
    for op in order:
        for index, operand in enumerate(op.operands):
            if isinstance(operand, OpResult):
                definition = operand.op
                near = (
                    definition.parent is op.parent and order.get(definition, len(order)) < order[op]
                )
            else:
                near = operand.owner is op.parent
            if near:  # by far most uses
                continue
            if (fault := _fault(operand, op, order, dominators)) is not None:
                name = f" %{operand.name_hint}" if operand.name_hint else ""
                message = f"'{op.name}': operand #{index}{name} {fault}"
                errors.append(UserError(message, where=location_of(op)))
                if len(errors) == MOST_ERRORS:
                    raise_all(errors)
    raise_all(errors)


def _fault(
    value: SSAValue,
    user: Operation,
    order: dict[Operation, int],
    dominators: dict[Region, dict[Block, Block]],
) -> str | None:
    """Describe the fault of the use of `value` by `user`, or return None."""
    definition = value.owner if isinstance(value, OpResult) else None
    block = definition.parent if isinstance(definition, Operation) else value.owner
    if not isinstance(block, Block) or block.parent is None:
        return "is defined by an operation that is not in the program"
    region = block.parent
    user_block, ancestor = _enclosing(user, region)
    if user_block is None or ancestor is None:
        return "is used outside the region that defines it"
    owner = region.parent
    if (owner is not None and owner.name in GRAPH_REGIONS) or user.name in UNORDERED_USERS:
        return None
    if user_block is block:
        if not isinstance(definition, Operation):
            return None
        if definition not in order:
            return "is defined by an operation that is not in the program"
        return None if order[definition] < order[ancestor] else "is used before its definition"
    if region not in dominators:
        dominators[region] = immediate_dominators(region)
    if _dominates(block, user_block, dominators[region]):
        return None
    return "does not dominate this use: some path leads here without defining it"


def _enclosing(op: Operation, region: Region) -> tuple[Block | None, Operation | None]:
    """Return the block of `region` that holds `op`, at any depth, and the operation in it that
    does."""
    ancestor: Operation | None = op
    while ancestor is not None:
        block = ancestor.parent
        if block is None:
            return None, None
        if block.parent is region:
            return block, ancestor
        ancestor = block.parent_op()
    return None, None


def _dominates(a: Block, b: Block, idom: dict[Block, Block]) -> bool:
    """Say whether every path to `b` passes `a`; no path leads to an unreachable block."""
    if b not in idom:
        return True
    while b is not a and idom[b] is not b:
        b = idom[b]
    return b is a


def immediate_dominators(region: Region) -> dict[Block, Block]:
    """Map each reachable block to its immediate dominator, the entry to itself.

    Source: Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm", 2001.
    """
    entry = region.blocks[0]
    postorder = _postorder(entry)
    number = {block: index for index, block in enumerate(postorder)}
    predecessors: dict[Block, list[Block]] = {block: [] for block in postorder}
    for block in postorder:
        for successor in _successors(block):
            predecessors[successor].append(block)
    idom = {entry: entry}
    changed = True
    while changed:
        changed = False
        for block in reversed(postorder[:-1]):
            known = [p for p in predecessors[block] if p in idom]
            best = known[0]
            for other in known[1:]:
                best = _common(best, other, idom, number)
            changed |= idom.get(block) is not best
            idom[block] = best
    return idom


def _common(a: Block, b: Block, idom: dict[Block, Block], number: dict[Block, int]) -> Block:
    """Return the closest block that dominates both."""
    while a is not b:
        while number[a] < number[b]:
            a = idom[a]
        while number[b] < number[a]:
            b = idom[b]
    return a


def _postorder(entry: Block) -> list[Block]:
    """List the blocks reachable from `entry` in reverse postorder."""
    seen, finished = {entry}, list[Block]()
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, successors = stack[-1]
        following = next((s for s in successors if s not in seen), None)
        if following is None:
            finished.append(block)
            stack.pop()
            continue
        seen.add(following)
        stack.append((following, iter(_successors(following))))
    return finished


def _successors(block: Block) -> tuple[Block, ...]:
    """Return the blocks that the terminator of `block` may jump to."""
    return () if block.last_op is None else tuple(block.last_op.successors)
