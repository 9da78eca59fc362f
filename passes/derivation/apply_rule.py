"""algebra-apply-rule: apply one derivation rule; pipelines of it replay what a search found."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects import scalars
from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.errors import UserError, did_you_mean
from ...dialects.floats import DISTRIBUTED, DROPPED, GUARDED, Floats
from ...dialects.scope_text import parse_index
from ...lowering.algebra_to_kernel.table import LibraryKernel, library_kernels, matches
from .apply_steps import find_scope, merge_ops, replace_op
from .body import SumOfProducts, body_of
from .instantiate import instantiate
from .lift import Lift, body_of_op, family, scope_names, scope_ops
from .price import ScopePrices
from .rules import BY_HAND, EAGER, EINNET, RULES
from .step import (
    DerivationRule,
    DerivationStep,
    OnBody,
    OnPair,
    OnScope,
    OptionKind,
    ProposalOptions,
    RuleOption,
    propose_nothing,
)


def normalise(scope: Scope) -> DerivationStep:
    """Write a scope in its canonical form: iterators i0, i1, ... and k0, k1, ... in a fixed order.

    Sums that a guard pins are substituted, extents of 1 and sums that nothing reads vanish, guards
    that reads imply are dropped. An elementwise scope whose terms would combine or cancel is
    refused: its floats would change.

    Before:

        %y = algebra.scope (h: 8) sum (r: 3, c: 4) %k[c, r] * %x[c, h + r] : tensor<8xf32>

    After:

        %y = algebra.scope (i0: 8) sum (k0: 3, k1: 4) %k[k1, k0] * %x[k1, i0 + k0] : tensor<8xf32>
    """
    return DerivationStep("normalise", scope)


def match(body: SumOfProducts, table: list[LibraryKernel], number: int) -> DerivationStep | None:
    """Write a scope in the form that a library kernel takes, with scopes that lay out its operands.

    Before:

        %y = algebra.scope (n: 2, f: 3, h: 6) sum (c: 4, r: 3)
               %x[n, c, h + r - 1] * %k[f, c, r] : tensor<2x3x6xf32>

    After `kernel="gemm"`, an im2col and a matrix product:

        %y.0 = algebra.scope (i0: 2, i1: 6, i2: 3, i3: 4) %x[i0, i3, i1 + i2 - 1]
        %y.1 = algebra.scope (i0: 2, i1: 6, i2: 3) sum (k0: 3, k1: 4)
                 %y.0[i0, i1, k0, k1] * %k[i2, k1, k0] : tensor<2x6x3xf32>
        %y = algebra.scope (n: 2, f: 3, h: 6) %y.1[n, h, f] : tensor<2x3x6xf32>
    """
    found = matches(body.scope(), table)
    if number >= len(found):
        return None
    return instantiate(
        found[number] if number >= 0 else min(found, key=ScopePrices(table=table).match)
    )


KERNEL = RuleOption("kernel", "kernel", "a library kernel by its name")
NUMBER = RuleOption("number", "number", "which of its matches; -1 for the cheapest (modelled)", -1)

FORMS: tuple[DerivationRule, ...] = (
    DerivationRule(
        "normalise",
        propose_nothing,
        "none: the canonical form is the same scope",
        EINNET,
        DROPPED,
        OnScope(normalise, family),
    ),
    DerivationRule(
        "match",
        propose_nothing,
        "the kernel computes the scope, its operands laid out as it takes them",
        "EinNet (OSDI 2023), section 5: operator matching",
        GUARDED,
        OnBody(match, (KERNEL, NUMBER)),
    ),
)


def all_rules() -> dict[str, DerivationRule]:
    """The rules that can be applied, by name."""
    return {rule.name: rule for rule in (*RULES, *EAGER, *BY_HAND, *FORMS)}


def usage(rule: DerivationRule) -> str:
    """The options of a rule as written in a pipeline: `sums=NAME,.. by=N`."""
    texts = [f"{o.name}={_PLACEHOLDERS[o.kind]}" for o in options_of(rule)]
    return " ".join(
        text if o.default is None else f"[{text}]"
        for text, o in zip(texts, options_of(rule), strict=True)
    )


def description(rule: DerivationRule) -> str:
    """What a rule does, with IR before and after: its function's docstring."""
    source = rule.propose if rule.for_user is None else rule.for_user.make
    return inspect.cleandoc(source.__doc__ or "")


_PLACEHOLDERS: Mapping[OptionKind, str] = {
    "sums": "NAME,..",
    "sum": "NAME",
    "traversals": "NAME,..",
    "traversal": "NAME",
    "indices": '"EXPRESSION",..',
    "number": "N",
    "scope": "NAME",
    "kernel": "NAME",
}


def options_of(rule: DerivationRule) -> tuple[RuleOption, ...]:
    """The options of a rule, without the scope it changes."""
    return (
        () if rule.for_user is None or isinstance(rule.for_user, OnScope) else rule.for_user.options
    )


@dataclass(frozen=True)
class AlgebraApplyRule(ModulePass):
    """Apply one derivation rule to one scope (docs/derivation-rules.md).

    `rule` names it; each rule takes some of the other options. `at` names the scope, as it is
    printed; without it the rule changes the only scope that it applies to. Iterators are named as
    in the text.

    Before:

        %y = algebra.scope (h: 8) sum (r: 4) %x[h + r] * %k[r] : tensor<8xf32>

    After `algebra-apply-rule{rule=split-sum sums="r" by=2}`:

        %y = algebra.scope (i0: 8) sum (k0: 2, k1: 2) %x[i0 + 2 * k0 + k1] * %k[2 * k0 + k1]
    """

    name = "algebra-apply-rule"
    floats: ClassVar[Floats] = DISTRIBUTED
    rule: str
    at: str = ""
    sums: tuple[str, ...] = ()
    sum: str = ""
    traversals: tuple[str, ...] = ()
    traversal: str = ""
    along: str = ""
    phi: tuple[str, ...] = ()
    by: int | None = None
    guard: int | None = None
    low: int | None = None
    high: int | None = None
    position: int | None = None
    read: str = ""
    first: str = ""
    second: str = ""
    kernel: str = ""
    number: int | None = None

    @staticmethod
    def more_help() -> str:
        """The rules, one line each: the addition to `isoform-opt --help-pass`."""
        rows = [(f"{rule.name} {usage(rule)}", description(rule)) for rule in all_rules().values()]
        width = max(len(words) for words, _ in rows)
        lines = [f"  {words:<{width}}  {text.partition(chr(10))[0]}" for words, text in rows]
        return "\n".join(["Rules:", *lines])

    def __post_init__(self) -> None:
        known = all_rules().get(self.rule)
        if known is not None:
            object.__setattr__(self, "floats", known.floats)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the program.

        Raises:
            UserError: there is no such rule or option, the rule does not apply, or it applies to
                several scopes and none is named.
        """
        rules = all_rules()
        if self.rule not in rules:
            hint = did_you_mean(self.rule, rules) or f"rules: {', '.join(rules)}"
            raise UserError(f"no derivation rule '{self.rule}'", hint=hint)
        rule = rules[self.rule]
        given = self._given(rule)
        if isinstance(rule.for_user, OnPair):
            _merge(op, rule, given["first"], given["second"])
        else:
            _rewrite(op, rule, self.at, given)

    def _given(self, rule: DerivationRule) -> dict[str, Any]:
        """The options of a rule, with defaults. Raises UserError for those it does not take."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        given = {n: v for n, v in values.items() if v not in ("", (), None)}
        known = {option.name: option for option in options_of(rule)}
        positions = () if isinstance(rule.for_user, OnPair) else ("at",)
        wrong = next((n for n in given if n not in ("name", "rule", *positions, *known)), None)
        missing = next((n for n in known if n not in given and known[n].default is None), None)
        takes = f"it takes: {', '.join([*known, *positions])}"
        if wrong is not None:
            raise UserError(f"rule '{rule.name}' has no option '{wrong}'", hint=takes)
        if missing is not None:
            raise UserError(f"rule '{rule.name}' needs option '{missing}'", hint=takes)
        return {n: given.get(n, known[n].default) for n in known}


def _does_not_apply(rule: DerivationRule, at: str) -> UserError:
    where = f"%{at}" if at else None
    return UserError("the rule does not apply", where=where, hint=rule.condition)


def _rewrite(module: ModuleOp, rule: DerivationRule, at: str, given: Mapping[str, Any]) -> None:
    """Apply a rule to the scope named `at`, or to the only one that it applies to."""
    found: list[tuple[ScopeOp, DerivationStep, Lift]] = []
    for op in [find_scope(module, at)] if at else scope_ops(module):
        inside = _inside(module, rule, op, given)
        if inside is None:
            continue
        lift = Lift(module, inside)
        step = _step(rule, op, lift, given, named=bool(at))
        if step is not None:
            found.append((op, step, lift))
    if not found:
        raise _does_not_apply(rule, at)
    if len(found) > 1:
        known = scope_names(module)
        names = ", ".join(f"%{known[op]}" for op, _, _ in found)
        raise UserError("the rule applies to several scopes", found=names, hint="choose: at=NAME")
    op, step, lift = found[0]
    replace_op(module, op, step, lift.values)


def _inside(module: ModuleOp, rule: DerivationRule, op: ScopeOp, given: Mapping[str, Any]) -> Any:
    """Which other scopes to open (read by their formula); None if the rule does not apply."""
    if isinstance(rule.for_user, OnScope):
        return rule.for_user.inside(op)
    named = [given[o.name] for o in options_of(rule) if o.kind == "scope"]
    chosen = [find_scope(module, name) for name in named]
    return (lambda other: other in chosen) if chosen else family(op)


def _step(
    rule: DerivationRule, op: ScopeOp, lift: Lift, given: Mapping[str, Any], *, named: bool
) -> DerivationStep | None:
    """The step of a rule on a scope; None if it does not apply.

    Raises:
        UserError: a scope that the user named lacks the iterator, or its floats would change.
    """
    if isinstance(rule.for_user, OnScope):
        scope = lift.scope(op)
        _require_terms(op, scope)
        return rule.for_user.make(scope)
    body = body_of_op(op, lift)
    if body is None:
        return None
    if not isinstance(rule.for_user, OnBody):
        return next(iter(rule.propose(body, ProposalOptions())), None)
    if rule.for_user.canonical:
        body = body_of(body.scope())
    told = [option for option in rule.for_user.options if option.kind != "scope"]
    if body is None or not (named or all(_has(op, o, given[o.name]) for o in told)):
        return None
    values = [_value(op, option, given[option.name]) for option in told]
    if not rule.for_user.allows(op, *values):
        return None
    return rule.for_user.make(body, *values)


def _has(op: ScopeOp, option: RuleOption, value: Any) -> bool:
    """Whether a scope has the iterators that an option names."""
    match option.kind:
        case "sums" | "traversals":
            return all(name in op.names for name in value)
        case "sum" | "traversal":
            return value in op.names
        case "indices":
            words = {word for text in value for word in re.findall(r"[A-Za-z_][\w$.]*", text)}
            return words <= {"floordiv", "mod", *op.names[: len(op.traversal)]}
        case _:
            return True


def _value(op: ScopeOp, option: RuleOption, value: Any) -> Any:
    """The values of a rule's options, with iterators as numbers. Raises UserError."""
    match option.kind:
        case "sums":
            return [_number(op, name, summed=True) for name in value]
        case "traversals":
            return [_number(op, name, summed=False) for name in value]
        case "sum" | "traversal":
            return _number(op, value, summed=option.kind == "sum")
        case "indices":
            return [parse_index(text, op.names[: len(op.traversal)]) for text in value]
        case "kernel":
            table = [kernel for kernel in library_kernels() if kernel.name == value]
            if not table:
                known = ", ".join(kernel.name for kernel in library_kernels())
                raise UserError(f"no library kernel '{value}'", hint=f"there are: {known}")
            return table
        case _:
            return value


def _number(op: ScopeOp, name: str, *, summed: bool) -> int:
    """The number of an iterator among the sums (or traversals). Raises UserError."""
    rank = len(op.traversal)
    names = op.names[rank:] if summed else op.names[:rank]
    if name in names:
        return names.index(name)
    kind = "summation" if summed else "traversal"
    raise UserError(
        f"%{op.result.name_hint} has no {kind} iterator '{name}'",
        hint=did_you_mean(name, names) or f"it has: {', '.join(names) or 'none'}",
    )


def _merge(module: ModuleOp, rule: DerivationRule, first: str, second: str) -> None:
    """Compute two scopes as one."""
    assert isinstance(rule.for_user, OnPair)
    one, other = find_scope(module, first), find_scope(module, second)
    lift = Lift(module)
    bodies = body_of(lift.scope(one)), body_of(lift.scope(other))
    made = None
    if bodies[0] is not None and bodies[1] is not None and one is not other:
        made = rule.for_user.make(bodies[0], bodies[1])
    if made is None:
        raise _does_not_apply(rule, first)
    merge_ops(module, one, other, made, lift.values)


# --- floats -------------------------------------------------------------------------------------


def _require_terms(op: ScopeOp, new: Scope) -> None:
    """Refuse to combine terms of an elementwise scope.

    Raises:
        UserError: the canonical form has fewer terms: literals or equal reads were combined.
    """
    expr = op.expr()
    reads = [node for node in _leaves(expr) if isinstance(node, scalars.Read)]
    met = len(set(reads)) < len(reads) or any(isinstance(x, scalars.Const) for x in _leaves(expr))
    if op.is_pointwise and met and len(new.expr.terms) < _terms(expr):
        hint = "x + c - c is not x in floats: isoform-opt -p fast-math lets generated code do it"
        raise UserError("its terms would be combined", where=f"%{op.result.name_hint}", hint=hint)


def _leaves(expr: scalars.Expr) -> list[scalars.Expr]:
    """Reads and literals, with multiplicity."""
    parts = scalars.children(expr)
    return [leaf for part in parts for leaf in _leaves(part)] if parts else [expr]


def _terms(expr: scalars.Expr) -> int:
    """Terms of an expression multiplied out, without combining any."""
    match expr:
        case scalars.Call("add" | "sub", (left, right)):
            return _terms(left) + _terms(right)
        case scalars.Call("mul", (left, right)):
            return _terms(left) * _terms(right)
        case scalars.Call("neg", (inner,)) | scalars.Cast(_, inner):
            return _terms(inner)
        case _:
            return 1
