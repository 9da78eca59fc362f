"""Rules as text: what a rule file holds, read and written without loss.

    # comment, to the end of the line
    rule matmul-merge-right
      proof proved-by-z3
      floats rounding
      source generated (2 -> 4 operators)
      where a.rank == 2
      matmul(?a, ?b), matmul(?a, ?c) =>
        split(matmul(?a, concat(?b, ?c, axis=1)), axis=1, sizes=[?b.shape[1], ?c.shape[1]]).0,
        (same).1

`?x` is a variable: of a tensor as an operand, of an attribute after `name=`. Attribute values are
numbers, true, false, "text", `?s`, sizes over variables (`?b.shape[1]`), and lists of these.
A rule may be one line, its proof and float label in brackets, `over` and `where` after the law:

    rule relu-twice [proved-by-z3; bits]: relu(relu(?x)) => relu(?x)
    rule reshape-to-itself: reshape(?x, shape=?s) => ?x where ?s == ?x.shape

A `let` names a value that the law or its conditions use: after the law as `where` is, or a line:

    rule back: reshape(reshape(?x, shape=?s), shape=?t) => ?x let ?u = ?x.shape where ?t == ?u

`.k` takes one result of an op with several; `(same).k` another result of the op before it.
A line `over f unary` makes a rule for each elementwise op of one operand, any attributes of which
stay, and its law says `f(?x)`; `over f binary` for those of two; `over f relu sigmoid` for these.
Several `where` lines must all hold. The law may run over several lines, indented.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from ...dialects.errors import UserError, did_you_mean
from ...dialects.floats import Floats, Label
from ...dialects.graph import OPS
from ...dialects.graph.elementwise import BinaryOp, ElementwiseOp, UnaryOp
from .conditions import FUNCTIONS, compiled
from .rule import (
    PROOFS,
    AttrAtom,
    Attributes,
    AttrValue,
    AttrVar,
    Node,
    Out,
    Proof,
    Rule,
    Size,
    Term,
    Var,
    variables_of,
)
from .terms import attribute_names

_SIGNS = r"=>|==|!=|<=|>=|//|[-+*%<>()\[\],.=?]"
_TOKEN = re.compile(rf'\s*("[^"]*"|\d+\.\d+|\d+|[A-Za-z_]\w*|{_SIGNS})')
_WORDS = "|".join(("min", "max", "not", "and", "or", *FUNCTIONS))
_NAME = re.compile(rf"(?<![.\w])(?!(?:{_WORDS})\b)([A-Za-z_]\w*)")
_KEYS = ("proof", "floats", "source", "over", "let", "where")
_WIDTH = 100


def print_rules(rules: Sequence[Rule]) -> str:
    """The text of the rules, in order, one blank line between them."""
    return "\n".join(print_rule(rule) for rule in rules)


def print_rule(rule: Rule) -> str:
    """The text of one rule, ended by a newline."""
    head = [f"rule {rule.name}", f"  proof {rule.proof}"]
    head += [f"  floats {_floats_text(rule.floats)}"] if rule.floats is not None else []
    head += [f"  source {rule.source}"] if rule.source else []
    head += [f"  where {text}" for text in rule.where]
    return "\n".join([*head, *_law_lines(rule)]) + "\n"


def _floats_text(floats: Floats) -> str:
    """The float label, with a note if infinities are not kept."""
    return floats.label.value + (f", {floats.infinities}" if floats.infinities else "")


def _floats(text: str, location: str) -> Floats:
    """Parse a float label. Raises UserError for an unknown one."""
    name, _, infinities = text.partition(",")
    label = next((known for known in Label if known.value == name.strip()), None)
    if label is None:
        hint = did_you_mean(name, [known.value for known in Label])
        raise UserError(
            f"unknown label '{name}'", where=location, expected=", ".join(Label), hint=hint
        )
    return Floats(label, infinities.strip())


def _law_lines(rule: Rule) -> list[str]:
    left, right = _terms_text(rule.left), _terms_text(rule.right)
    line = f"  {', '.join(left)} => {', '.join(right)}"
    if len(line) <= _WIDTH:
        return [line]
    return [f"  {', '.join(left)} =>", *(f"    {t}," for t in right[:-1]), f"    {right[-1]}"]


def _terms_text(terms: Sequence[Term]) -> list[str]:
    texts, before = list[str](), None
    for term in terms:
        if isinstance(term, Out) and term.node == before:
            texts.append(f"(same).{term.index}")
        else:
            texts.append(term_text(term))
        before = term.node if isinstance(term, Out) else None
    return texts


def term_text(term: Term) -> str:
    """A term on one line."""
    match term:
        case Var():
            return f"?{term.name}"
        case Out():
            return f"{term_text(term.node)}.{term.index}"
        case Node():
            parts = [term_text(operand) for operand in term.operands]
            parts += [f"{name}={value_text(value)}" for name, value in term.attributes]
            return f"{term.op}({', '.join(parts)})"


def value_text(value: AttrValue) -> str:
    """An attribute's value in the syntax of rule files."""
    match value:
        case tuple():
            return f"[{', '.join(value_text(v) for v in value)}]"
        case AttrVar():
            return f"?{value.name}"
        case Size():
            return _NAME.sub(r"?\1", value.text)
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"'
        case _:
            return repr(value)


# --- reading ------------------------------------------------------------------------------------


@dataclass
class _Block:
    """The lines of one rule, with the number of the first.

    Attributes:
        words: the words of the law as the file has them, each with its line and column.
    """

    name: str
    line: int
    fields: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    law: list[str] = field(default_factory=list[str])
    words: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])


def parse_rules(text: str, where: str = "rules") -> tuple[Rule, ...]:
    """The rules of a file.

    Args:
        where: the file's name, for messages.

    Raises:
        UserError: with file and line, at the first error.
    """
    rules, seen = list[Rule](), set[str]()
    for block in _blocks(text, where):
        location = f"{where}:{block.line}:1"
        if block.name in seen:
            raise UserError(f"rule '{block.name}' stands twice", where=location)
        seen.add(block.name)
        written_out = _without_lets(block, location)
        rules += [_rule(made, location) for made in _instances(written_out, location)]
    return tuple(rules)


def place_of_op(text: str, where: str, rule: str, op: str) -> str:
    """Where a rule of a file first names an op, as FILE:LINE:COLUMN."""
    name = re.compile(rf"(?<![\w?.]){re.escape(op)}(?=\()")
    for block in _blocks(text, where):
        if rule == block.name or rule.startswith(f"{block.name}-"):
            for word, line, column in block.words:
                found = name.search(word)
                if found is not None:
                    return f"{where}:{line}:{column + found.start()}"
    return where


def _without_lets(block: _Block, location: str) -> _Block:
    """The rule with each name of a `let` replaced by its value in what follows and in the law."""
    law = block.law
    lets = [text for key, text in block.fields if key == "let"]
    others = [(key, text) for key, text in block.fields if key != "let"]
    for number, text in enumerate(lets):
        found = _LET.fullmatch(text)
        if found is None:
            raise UserError("a let is 'let ?NAME = VALUE'", where=location, found=text)
        name, value = re.compile(rf"\?{found['name']}\b"), f"({found['value']})"
        lets[number + 1 :] = [name.sub(value, later) for later in lets[number + 1 :]]
        others = [(key, name.sub(value, text)) for key, text in others]
        law = [name.sub(value, line) for line in law]
    return _Block(block.name, block.line, others, law, block.words)


def _instances(block: _Block, location: str) -> list[_Block]:
    """The rule for each op that its line `over` names; the rule itself where it has none."""
    over = next((text.split() for key, text in block.fields if key == "over"), None)
    if over is None:
        return [block]
    name, *ops = over
    ops = [op for word in ops for op in (_FAMILIES[word]() if word in _FAMILIES else [word])]
    if not ops:
        raise UserError("'over' names no op", where=location, hint="write: over f relu sigmoid")
    fields = [(key, text) for key, text in block.fields if key != "over"]
    law = " ".join(block.law)
    return [
        _Block(f"{block.name}-{op}", block.line, fields, [_over(law, name, op)], block.words)
        for op in ops
    ]


def _over(law: str, name: str, op: str) -> str:
    """The law of an op in place of `name`; attributes of elementwise ops are variables."""
    own = "".join(f", {attribute}=?{op}_{attribute}" for attribute in _own_attributes().get(op, ()))
    parts = re.split(rf"\b{re.escape(name)}\(", law)
    made, open_calls = parts[0], list[int]()
    for part in parts[1:]:
        made += f"{op}("
        open_calls.append(0)
        for sign in part:
            if open_calls and sign == ")" and open_calls[-1] == 0:
                made += own
                open_calls.pop()
            elif open_calls:
                open_calls[-1] += (sign == "(") - (sign == ")")
            made += sign
    return made


@cache
def _own_attributes() -> dict[str, tuple[str, ...]]:
    return {
        op.name.removeprefix("graph."): tuple(op.get_irdl_definition().properties)
        for op in OPS
        if issubclass(op, ElementwiseOp)
    }


def _elementwise(base: type[ElementwiseOp]) -> list[str]:
    """The elementwise ops of so many operands, of one element type."""
    return [
        op.name.removeprefix("graph.") for op in OPS if issubclass(op, base) and not op.RETURNS_BOOL
    ]


_FAMILIES = {"unary": lambda: _elementwise(UnaryOp), "binary": lambda: _elementwise(BinaryOp)}


def _blocks(text: str, where: str) -> list[_Block]:
    blocks = list[_Block]()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        location = f"{where}:{number}:{len(line) - len(line.lstrip()) + 1}"
        if line[0] not in " \t":
            found = _HEAD.fullmatch(" ".join(words))
            if found is None:
                raise UserError(
                    "a rule starts with 'rule NAME'", where=location, found=line.strip()
                )
            blocks.append(_block(number, **found.groupdict()))
            behind = line.find(": ") + 2 if found["law"] is not None else len(line)
            blocks[-1].words += _words_of(line, number, behind)
        elif not blocks:
            raise UserError("a rule starts with 'rule NAME'", where=location, found=line.strip())
        elif not blocks[-1].law and words[0] in _KEYS and "=>" not in words:
            blocks[-1].fields.append((words[0], " ".join(words[1:])))
        else:
            blocks[-1].law.append(" ".join(words))
            blocks[-1].words += _words_of(line, number)
    return blocks


def _words_of(line: str, number: int, start: int = 0) -> list[tuple[str, int, int]]:
    """The words of a line from a column on, without its comment, each with line and column."""
    text = line.split("#", 1)[0]
    return [(w[0], number, w.start() + 1) for w in re.finditer(r"\S+", text) if w.start() >= start]


def _place(block: _Block, position: int, location: str) -> str:
    """Where the law's text stands at a position, if the file has the law as it was read."""
    law = " ".join(block.law)
    words = law.split(" ")
    index = law.count(" ", 0, position)
    if [word for word, _, _ in block.words][: len(words)] != words or index >= len(words):
        return location
    _, line, column = block.words[index]
    inside = position - (law.rfind(" ", 0, position) + 1)
    return f"{location.rsplit(':', 2)[0]}:{line}:{column + inside}"


_LET = re.compile(r"\?(?P<name>[A-Za-z_]\w*) ?= ?(?P<value>.+)")
_HEAD = re.compile(r"rule (?P<name>[^\s:\[]+)(?: ?\[(?P<facts>[^\]]*)\])?(?:: ?(?P<law>.+))?")


def _block(line: int, name: str, facts: str | None, law: str | None) -> _Block:
    """The first line of a rule: its name, or all of it."""
    made = _Block(name, line)
    for key, text in zip(("proof", "floats"), (facts or "").split(";", 1), strict=False):
        made.fields += [(key, text.strip())] if text.strip() else []
    if law is not None:
        head, *rest = re.split(r" (let|where|over) ", law)
        made.law.append(head)
        made.fields += zip(rest[::2], rest[1::2], strict=True)
    return made


def _rule(block: _Block, location: str) -> Rule:
    values = dict(block.fields)
    conditions = tuple(text for key, text in block.fields if key == "where")
    wanted = values.get("proof", "checked-only")
    proof: Proof | None = next((p for p in PROOFS if p == wanted), None)
    if proof is None:
        hint = did_you_mean(values["proof"], PROOFS) or ", ".join(PROOFS)
        raise UserError(f"unknown proof '{values['proof']}'", where=location, hint=hint)
    parser, place = _Parser(" ".join(block.law)), location
    try:
        for text in conditions:
            compiled(text)
        place = _place(block, 0, location)
        left, right = parser.law()
    except UserError as error:
        place = _place(block, parser.position, location) if parser.position else place
        raise UserError(error.one_line(), where=f"{place}: rule {block.name}") from error
    floats = _floats(values["floats"], location) if "floats" in values else None
    rule = Rule(block.name, left, right, conditions, proof, values.get("source", ""), floats)
    _check(rule, location)
    return rule


def _check(rule: Rule, location: str) -> None:
    """Reject a right side with unbound variables or another number of outputs."""
    if len(rule.left) != len(rule.right):
        raise UserError(
            f"rule '{rule.name}' has {len(rule.left)} outputs left and {len(rule.right)} right",
            where=location,
        )
    missing = set(variables_of(rule.right)) - set(variables_of(rule.left))
    missing |= {*attribute_names(rule.right)} - {*attribute_names(rule.left)}
    if missing:
        names = ", ".join(f"?{name}" for name in sorted(missing))
        raise UserError(f"rule '{rule.name}' does not bind {names} on its left", where=location)


class _Parser:
    """Recursive descent over the law's text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens, self.starts = list[str](), list[int]()
        self.at = 0

    @property
    def position(self) -> int:
        """Where the token that is read next begins."""
        return self.starts[self.at] if self.at < len(self.starts) else len(self.text)

    def split(self) -> None:
        """Find the tokens. Raises UserError at a character that begins none."""
        at = 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                self.at = len(self.tokens)
                self.starts.append(at + len(self.text[at:]) - len(self.text[at:].lstrip()))
                raise UserError("unexpected character", found=self.text[at:].strip()[:1])
            self.tokens.append(match.group(1))
            self.starts.append(match.start(1))
            at = match.end()

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        if not token or (wanted is not None and token != wanted):
            raise UserError("the law is broken", expected=wanted, found=token or "its end")
        self.at += 1
        return token

    def law(self) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
        self.split()
        left = self.terms()
        self.take("=>")
        right = self.terms()
        if self.peek():
            raise UserError("the law goes on after its right side", found=self.peek())
        return left, right

    def terms(self) -> tuple[Term, ...]:
        found = [self.term(None)]
        while self.peek() == ",":
            self.take()
            found.append(self.term(found[-1]))
        return tuple(found)

    def term(self, before: Term | None) -> Term:
        if self.peek() == "?":
            self.take()
            return Var(self.take())
        if self.peek() == "(":
            for token in ("(", "same", ")", "."):
                self.take(token)
            if not isinstance(before, Out):
                raise UserError("'(same)' follows a result of an op with several")
            return Out(before.node, self.number())
        node = self.node()
        if self.peek() == ".":
            self.take()
            return Out(node, self.number())
        return node

    def number(self) -> int:
        token = self.take()
        if not token.isdigit():
            raise UserError("a whole number is needed", found=token)
        return int(token)

    def node(self) -> Node:
        op = self.take()
        if not op.isidentifier():
            raise UserError("an op's name is needed", found=op)
        self.take("(")
        operands, attributes = list[Term](), list[tuple[str, AttrValue]]()
        while self.peek() != ")":
            if self.peek(1) == "=":
                name = self.take()
                self.take("=")
                attributes.append((name, self.value()))
            else:
                operands.append(self.term(None))
            if self.peek() != ")":
                self.take(",")
        self.take(")")
        return Node(op, tuple(operands), _sorted(attributes))

    def value(self) -> AttrValue:
        if self.peek() != "[":
            return self.atom()
        self.take()
        found = list[AttrAtom]()
        while self.peek() != "]":
            found.append(self.atom())
            if self.peek() != "]":
                self.take(",")
        self.take("]")
        return tuple(found)

    def atom(self) -> AttrAtom:
        """The text up to the comma or bracket that ends the value."""
        tokens, depth = list[str](), 0
        while self.peek() and not (depth == 0 and self.peek() in (",", ")", "]")):
            depth += (self.peek() in ("(", "[")) - (self.peek() in (")", "]"))
            tokens.append(self.take())
        if not tokens:
            raise UserError("an attribute's value is missing", found=self.peek() or "its end")
        return _atom(tokens)


def _atom(tokens: list[str]) -> AttrAtom:
    text = "".join(tokens)
    if tokens in (["true"], ["false"]):
        return text == "true"
    if text[0] == '"' and len(tokens) == 1:
        return text[1:-1]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    if len(tokens) == 2 and tokens[0] == "?":
        return AttrVar(tokens[1])
    size = " ".join(t for t in tokens if t != "?")
    size = re.sub(r"\s*([.\[(])\s*", r"\1", size)
    size = re.sub(r"\s+([\]),])", r"\1", re.sub(r"([\[(])- ", r"\1-", size))
    compiled(size)
    return Size(size)


def _sorted(attributes: list[tuple[str, AttrValue]]) -> Attributes:
    names = [name for name, _ in attributes]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise UserError(f"attribute '{double}' stands twice")
    return tuple(sorted(attributes, key=lambda entry: entry[0]))
