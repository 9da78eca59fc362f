"""150 wrong invocations end in lines that say what is wrong, and in the right exit status.

All run in this process: a traceback, a crash or an exit by another way fails the test.
"""

import json
import os
import re
import struct
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest

import isoform
from isoform.compiler import cli, opt

GOOD = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
Capture = pytest.CaptureFixture[str]
HEADER = struct.pack("<Q", 1 << 60)


def mlir(body: str, result: str = "tensor<4xf32>") -> str:
    return f"func.func @main(%x: tensor<4xf32>) -> {result} {{\n{body}\n}}\n"


RAISING = """
from xdsl.passes import ModulePass

class Boom(ModulePass):
    name = "boom"

    def apply(self, ctx, op):
        raise ValueError("its own fault")

class BreakIr(ModulePass):
    name = "break-ir"

    def apply(self, ctx, op):
        for inner in list(op.walk()):
            if inner.name == "graph.relu":
                inner.detach()

PASSES = [Boom, BreakIr]
"""


FILES: dict[str, str | bytes] = {
    "good.mlir": GOOD,
    "empty.mlir": "",
    "spaces.mlir": "\n \n",
    "binary.mlir": b"\x00\xff\xfe\x80",
    "nul.mlir": "func.func @main(\0)",
    "open.mlir": "func.func @main(",
    "string.mlir": 'func.func @"main',
    "deep.mlir": "(" * 20_000,
    "foo.mlir": GOOD.replace("@main", "@foo"),
    "huge.mlir": GOOD.replace("4xf32", "9223372036854775807x4xf32"),
    "nested.mlir": mlir("builtin.module {\n" * 2000 + "}" * 2000),
    "lists.mlir": "builtin.module attributes {a = " + "[" * 5000 + "]" * 5000 + "} {}\n",
    "latin.mlir": GOOD.replace("%x", "%x\xe9").encode("latin-1"),
    "declared.mlir": "func.func private @main(tensor<4xf32>) -> tensor<4xf32>\n",
    "twice.mlir": GOOD + GOOD,
    "op.mlir": GOOD.replace("graph.relu", "graph.rleu"),
    "dialect.mlir": GOOD.replace("graph.relu", "grph.relu"),
    "type.mlir": GOOD.replace("-> tensor<4xf32>", "-> tensor<5xf32>"),
    "dims.mlir": mlir("  %y = graph.relu %x : tensor<5xf32>\n  func.return %y : tensor<5xf32>"),
    "undefined.mlir": mlir("  func.return %q : tensor<4xf32>"),
    "order.mlir": mlir(
        "  %y = graph.add %x, %z : tensor<4xf32>\n  %z = graph.relu %x : tensor<4xf32>\n"
        "  func.return %y : tensor<4xf32>"
    ),
    "noreturn.mlir": mlir("  %y = graph.relu %x : tensor<4xf32>"),
    "linalg.mlir": mlir("  %y = math.exp %x : tensor<4xf32>\n  func.return %y : tensor<4xf32>"),
    "recursive.mlir": mlir(
        "  %y = func.call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  func.return %y : tensor<4xf32>"
    ),
    "missing_call.mlir": mlir(
        "  %y = func.call @no(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  func.return %y : tensor<4xf32>"
    ),
    "weight.mlir": mlir(
        "  %w = graph.weight @w : tensor<4xf32>\n  %y = graph.add %x, %w : tensor<4xf32>\n"
        "  func.return %y : tensor<4xf32>"
    ),
    "outside.mlir": 'builtin.module attributes {isoform.weights = "../w.safetensors"} {\n'
    + GOOD
    + "}\n",
    "brokenside.mlir": 'builtin.module attributes {isoform.weights = "broken.safetensors"} {\n'
    + GOOD
    + "}\n",
    "broken.safetensors": HEADER + b"{}",
    "newer.mlir": "builtin.module attributes {isoform.ir_version = 99 : i64} {\n" + GOOD + "}\n",
    "version.mlir": "builtin.module attributes {isoform.ir_version = 1 : i64} {\n",
    "empty.onnx": b"",
    "text.onnx": b"this is text",
    "zeros.onnx": bytes(64),
    "noise.onnx": bytes(range(256)),
    "model.txt": GOOD,
    "noend": GOOD,
    "empty.json": "",
    "list.json": "[]",
    "object.json": "{}",
    "deep.json": "[" * 100_000,
    "binary.json": b"\x80\x04\x95",
    "text.npz": b"PK\x03\x04 no zip",
    "empty.npz": b"",
    "raises.py": "raise ValueError('no')",
    "syntax.py": "def f(:",
    "nothing.py": "x = 1",
    "wrong.py": "PASSES = 3",
    "exits.py": "import sys; sys.exit(0)",
    "bad.rules": "rule a: relu(?x) = relu(?x)\n",
    "binary.rules": b"\xff\xfe",
    "plugin.txt": "x = 1",
    "raising.py": RAISING,
    "import.py": "import nothing_of_the_kind",
    "lambda.py": "PASSES = [lambda: 1 / 0]",
    "cut.mlir": GOOD[:-60],
    "mutual.mlir": GOOD.replace("graph.relu %x :", "func.call @b(%x) : (tensor<4xf32>) ->")
    + GOOD.replace("@main", "@b").replace(
        "graph.relu %x :", "func.call @main(%x) : (tensor<4xf32>) ->"
    ),
    "newer.json": '{"format": "isoform-report", "version": 99}',
    "bare.json": '{"format": "isoform-report", "version": 2}',
    "noop.rules": "# a comment\nrule a: relu(?x) =>\n  relu(bar(?x))  # and one\n",
    "half.rules": "rule a\n  relu(relu(?x)) =>\n",
    "unbound.rules": "rule a: relu(?x) => relu(?y)\n",
}

# (tool, arguments, exit status, what the line says)
OPT: list[tuple[str, int, str]] = [
    ("linalg.mlir -t cuda", 1, "no CUDA code .what runs is made of graph, algebra and kernel ops"),
    ("none.mlir", 1, "no such file"),
    ("god.mlir", 1, "did you mean 'good.mlir'"),
    (".", 1, "does not tell the format|cannot read"),
    ("folder.mlir", 1, "cannot read"),
    ("binary.mlir", 1, "not text"),
    ("nul.mlir", 1, "nul.mlir:1"),
    ("open.mlir", 1, "open.mlir:1"),
    ("string.mlir", 1, "string.mlir:1"),
    ("deep.mlir", 1, "deep.mlir"),
    ("twice.mlir", 1, "twice.mlir|main"),
    ("op.mlir", 1, "op.mlir:2:8: unknown operation .*did you mean 'graph.relu'"),
    ("dialect.mlir", 1, "dialect.mlir:2:8: unknown dialect"),
    ("type.mlir", 1, "type.mlir:"),
    ("dims.mlir", 1, "dims.mlir:2"),
    ("undefined.mlir", 1, "%q is used but nothing defines it"),
    ("order.mlir", 1, "used before it"),
    ("noreturn.mlir", 1, "noreturn.mlir:2"),
    ("missing_call.mlir", 1, "could not be found"),
    ("newer.mlir", 1, "newer.mlir:1:.*a newer isoform wrote this"),
    ("version.mlir", 1, "version.mlir:"),
    ("model.txt", 1, "does not tell the format"),
    ("noend", 1, "does not tell the format"),
    ("brokenside.mlir", 1, "not a readable safetensors file"),
    ("nested.mlir", 1, "nested too deeply"),
    ("lists.mlir", 1, "nested too deeply"),
    ("latin.mlir", 1, "latin.mlir:1: this is not text"),
    ("loop.mlir", 1, "cannot read file: Too many levels of symbolic links"),
    ("dangling.mlir", 1, "no such file"),
    ("\udcff.mlir", 1, r"\\xff.mlir: no such file"),
    ("good.mlir -o folder.mlir", 1, "cannot write file: Is a directory"),
    ("good.mlir -o good.mlir --certificate good.mlir", 1, "another output goes there, too"),
    ("good.mlir -o out.mlir --certificate good.mlir", 1, "cannot write file: it is read, too"),
    ("good.mlir --reproducer good.mlir -p cse", 1, "cannot write file: it is read, too"),
    ("good.mlir --plugin nothing.py -o nothing.py", 1, "it is read, too|defines none of"),
    ("weight.mlir --weights link.safetensors -o link.safetensors", 1, "it is read, too|missing"),
    ("good.mlir -p cze", 1, "unknown pass 'cze' .did you mean 'cse'"),
    ("good.mlir -p ,cse", 1, "malformed pipeline|unknown pass"),
    ("good.mlir -p cse{", 1, "malformed pipeline"),
    ("good.mlir -p cse}", 1, "malformed pipeline"),
    ("good.mlir -p cse{x=1}", 1, "unknown option 'x'"),
    ("good.mlir -p func.func(cse", 1, "is not closed"),
    ("good.mlir -p func.func(cse))", 1, "malformed pipeline"),
    ("good.mlir -p func.func()", 0, ""),
    ("good.mlir -p scf.for(cse)", 1, "passes cannot be nested in 'scf.for'"),
    ("good.mlir -p builtin.module(builtin.module(cse))", 1, "stands outside only"),
    ("good.mlir -p algebra-apply-rule", 1, "algebra-apply-rule"),
    ("good.mlir -p tune{effort=3}", 1, "tune"),
    ("good.mlir -p graph-saturate{target=z80}", 1, "z80"),
    ("good.mlir -p graph-saturate{budget=soon}", 1, "option 'budget'"),
    ("good.mlir -p verify-equivalence", 1, "needs the option against"),
    ('good.mlir -p verify-equivalence{against="none.mlir"}', 1, "none.mlir"),
    ("recursive.mlir -p inline-calls", 1, "calls itself"),
    ("declared.mlir -p graph-to-algebra", 1, "has no body"),
    ("empty.mlir -p graph-to-algebra", 1, "no func.func @main"),
    ("good.mlir -p", 2, "expected one argument"),
    ("good.mlir --explan", 2, "did you mean '--explain'"),
    ("good.mlir -t z80", 2, "unknown name 'z80'"),
    ("good.mlir -t mlir{", 2, "malformed value"),
    ("good.mlir -f z80", 2, "unknown name 'z80'"),
    ("good.mlir --max-rewrites many", 2, "expected a whole number"),
    ("good.mlir --max-rewrites -1", 2, "expected"),
    ("good.mlir --plugin none.py", 1, "no such plug-in file"),
    ("good.mlir --plugin raises.py", 1, "raises.py:1: the plug-in failed to load: ValueError: no"),
    ("good.mlir --plugin syntax.py", 1, "syntax.py:1"),
    ("good.mlir --plugin nothing.py", 1, "defines none of"),
    ("good.mlir --plugin wrong.py", 1, "PASSES is not a list"),
    ("good.mlir --plugin exits.py", 1, "failed to load: SystemExit"),
    ("good.mlir --plugin plugin.txt", 1, "its name ends in .py"),
    ("good.mlir --plugin .", 1, "no such plug-in file"),
    ("good.mlir --weights none.safetensors", 1, "the weights file is missing"),
    ("good.mlir --weights broken.safetensors", 1, "not a readable safetensors file"),
    ("weight.mlir -p fold-batch-norm --weights good.mlir", 1, "not a readable safetensors"),
    ("good.mlir -o none/out.mlir", 1, "cannot write file"),
    ("good.mlir -o .", 1, "cannot write file"),
    ("good.mlir --certificate c.json", 2, "a certificate needs one input file and -o"),
    ("good.mlir --run-reproducer", 1, "no crash reproducer"),
    ("good.mlir -p cse --print-ir-after=dce", 2, "the pipeline has no pass 'dce'"),
    ("good.mlir --print-ir-before=cse", 2, "the pipeline has no pass 'cse' .they are none"),
    ("--help-pass nothing", 1, "unknown pass 'nothing'"),
    ("--help-pass", 2, "expected one argument"),
    ("--help-dialect nothing", 1, "unknown dialect 'nothing'"),
    ("--help-dialect graph.nothing", 1, "unknown operation 'graph.nothing'"),
    ("--help-dialect .", 1, "unknown dialect"),
    ("good.mlir good.mlir", 2, "unrecognized arguments"),
    ("good.mlir -p fast-math", 1, "pass 'fast-math'"),
    ("good.mlir --fast-math --strict-nan", 1, "excludes|fast-math"),
    ("good.mlir --verify-diagnostics", 1, "no error was raised"),
    ("cut.mlir", 1, "cut.mlir:2"),
    ("mutual.mlir -p inline-calls", 1, "@main calls itself"),
    (
        "good.mlir --plugin raising.py -p boom",
        1,
        "raising.py:8: the plug-in failed: ValueError: its",
    ),
    ("good.mlir --plugin raising.py -p break-ir", 1, "not in the program .after pass 'break-ir'"),
    ("good.mlir --plugin raising.py --plugin raising.py", 1, "there is already a pass 'boom'"),
    ("good.mlir --plugin import.py", 1, "import.py:1: .*No module named 'nothing_of_the_kind'"),
    ("good.mlir --plugin lambda.py", 1, "not a subclass of ModulePass"),
    ("good.mlir -o /dev/null/o.mlir", 1, "cannot write file"),
]
CLI: list[tuple[str, int, str]] = [
    ("", 2, "a command is missing"),
    ("optimise good.mlir", 2, "did you mean 'optimize'"),
    ("--versoin", 2, "a command is missing|unrecognized"),
    ("--seed 1 check good.mlir", 2, "a command is first .isoform check --seed"),
    ("-v check good.mlir", 2, "a command is first .isoform check -v"),
    ("run", 2, "MODEL"),
    ("run none.mlir", 1, "no such file"),
    ("run none.onnx", 1, "no such file"),
    ("run god.mlir", 1, "no such file .did you mean 'good.mlir'"),
    ("run resnet18", 1, "did you mean 'zoo:resnet18'"),
    ("run zoo:resnet19", 1, "resnet1"),
    ("run zoo:", 1, "zoo"),
    ("run model.txt", 1, "a model is FILE.onnx"),
    ("run noend", 1, "a model is FILE.onnx"),
    ("run folder.mlir", 1, "cannot read|folder"),
    ("run folder.onnx", 1, "folder.onnx"),
    ("run empty.mlir", 1, "no func.func @main"),
    ("run spaces.mlir", 1, "no func.func @main"),
    ("run binary.mlir", 1, "not text"),
    ("run open.mlir", 1, "open.mlir:1"),
    ("run foo.mlir", 1, "no func.func @main .it has @foo; @main is what runs"),
    ("run declared.mlir", 1, "has no body"),
    ("run op.mlir", 1, "unknown operation"),
    ("run undefined.mlir", 1, "nothing defines it"),
    ("run order.mlir", 1, "used before it"),
    ("run linalg.mlir", 1, "no CPU code .what runs is made of graph, algebra and kernel ops"),
    ("run recursive.mlir", 1, "calls itself"),
    ("run missing_call.mlir", 1, "could not be found"),
    ("run weight.mlir", 1, "weight 'w' is not in the weights file"),
    ("run outside.mlir", 1, "outside the model's folder"),
    ("run brokenside.mlir", 1, "not a readable safetensors"),
    ("run newer.mlir", 1, "a newer isoform wrote this"),
    ("run empty.onnx", 1, "empty.onnx"),
    ("run text.onnx", 1, "text.onnx"),
    ("run zeros.onnx", 1, "zeros.onnx"),
    ("run noise.onnx", 1, "noise.onnx"),
    ("run -", 1, "stdin: nothing is there"),
    ("run good.mlir --shape", 2, "expected one argument"),
    ("run good.mlir --shape x", 2, "expected NAME=1,3,224,224"),
    ("run good.mlir --shape x=a", 2, "expected NAME="),
    ("run good.mlir --shape x=5", 1, "has a fixed shape"),
    ("run good.mlir --shape y=4", 1, "there is no input 'y'"),
    ("run good.mlir --shape x=-4", 2, "expected NAME="),
    ("run good.mlir --threads 0", 2, "expected a positive whole number"),
    ("run good.mlir --threads many", 2, "expected a positive whole number"),
    ("run good.mlir --seed -1", 2, "seed"),
    ("run good.mlir --effort huge", 2, "invalid choice"),
    ("run good.mlir --tolerance -1", 2, "expected a relative error"),
    ("run good.mlir --tolerance nan", 2, "expected a relative error"),
    ("run good.mlir --target z80", 1, "z80"),
    ("run good.mlir --target h100", 1, "cannot run on 'h100' here"),
    ("run good.mlir --inputs none.npz", 1, "none.npz"),
    ("run good.mlir --inputs text.npz", 1, "text.npz"),
    ("run good.mlir --inputs empty.npz", 1, "empty.npz"),
    ("run good.mlir --inputs wrong.npz", 1, "there is no input 'z'|input 'x'"),
    ("run good.mlir --inputs shape.npz", 1, "another shape"),
    ("run good.mlir --inputs dtype.npz", 1, "another dtype"),
    ("run good.mlir --inputs pickled.npz", 1, "pickled.npz"),
    ("run good.mlir --output none/o.npz", 1, "its folder does not exist"),
    ("run good.mlir --profile none/t.json", 1, "its folder does not exist"),
    ("run good.mlir --plugin none.py", 1, "no such plug-in file"),
    ("run good.mlir --plugin raises.py", 1, "failed to load"),
    ("run good.mlir --fast-math --strict-nan", 1, "fast-math"),
    ("run good.mlir --jsn", 2, "did you mean '--json'"),
    ("run good.mlir --profile good.mlir", 1, "good.mlir: cannot write file: it is read, too"),
    ("run good.mlir --output link.mlir", 1, "link.mlir: cannot write file: it is read, too"),
    ("run good.mlir --output o.npz --profile o.npz", 1, "another output goes there, too"),
    ("run good.mlir --inputs shape.npz --output ./shape.npz", 1, "it is read, too"),
    ("run good.mlir --output folder.mlir", 1, "Is a directory"),
    ("run huge.mlir", 1, "no machine can hold tensor<9223372036854775807x4xf32>"),
    ("run loop.mlir", 1, "the link leads nowhere"),
    ("run dangling.mlir", 1, "the link leads nowhere"),
    ("run \udcff.mlir", 1, r"\\xff.mlir: no such file"),
    ("run good.mlir --threads 99999999", 1, "more threads than this machine can use"),
    ("run nested.mlir", 1, "nested too deeply"),
    ("run latin.mlir", 1, "latin.mlir:1: this is not text"),
    ("check none.onnx", 1, "no such file"),
    ("check huge.mlir", 1, "no machine can hold"),
    ("check noise.onnx", 1, "noise.onnx"),
    ("check foo.mlir", 1, "no func.func @main"),
    ("import good.mlir", 2, "-o"),
    ("import good.mlir -o out.txt", 1, "OUT.mlir"),
    ("import good.mlir -o none/out.mlir", 1, "its folder does not exist"),
    ("optimize good.mlir -o out.txt", 1, "an output is FILE.mlir or FILE.onnx"),
    ("optimize good.mlir -o out.onnx --emit kernel", 1, "holds the graph level only"),
    ("optimize good.mlir --certificate c.json", 2, "a certificate is of a written result"),
    ("optimize good.mlir -o - --certificate c.json", 2, "a certificate is of a written result"),
    ("optimize huge.mlir", 1, "no machine can hold"),
    ("optimize good.mlir --report good.mlir", 1, "good.mlir: cannot write file: it is read, too"),
    ("optimize good.mlir -o o.mlir --report o.mlir", 1, "another output goes there, too"),
    ("optimize good.mlir -o o.mlir --certificate ./o.mlir", 1, "another output goes there, too"),
    ("optimize good.mlir -o o.mlir --report r.json --certificate r.json", 1, "another output"),
    ("optimize good.mlir -o o.mlir --report o.safetensors", 1, "another output goes there, too"),
    ("optimize good.mlir --report good.safetensors", 1, "it is read, too"),
    ("run good.mlir --output good.safetensors", 1, "it is read, too"),
    ("optimize good.mlir -o o.mlir --report folder.mlir", 1, "Is a directory"),
    ("optimize good.mlir --rules laws.rules --report laws.rules", 1, "it is read, too"),
    ("optimize good.mlir -o good.mlir/o.mlir", 1, "its folder does not exist"),
    ("optimize good.mlir --budget 0", 2, "expected seconds"),
    ("optimize good.mlir --budget inf", 2, "expected seconds"),
    ("optimize good.mlir --strategy nothing", 1, "nothing"),
    ("optimize good.mlir --target z80", 1, "z80"),
    ("optimize good.mlir --cost-file none.json", 1, "none.json"),
    ("optimize good.mlir --cost-file list.json", 1, "list.json"),
    ("optimize good.mlir --rules none.rules", 1, "none.rules"),
    ("optimize good.mlir --rules bad.rules", 1, "bad.rules:1:18: rule a"),
    ("optimize good.mlir --rules binary.rules", 1, "not text"),
    ("optimize good.mlir --pipeline cze", 1, "unknown pass 'cze'"),
    ("explain none.json", 1, "none.json"),
    ("explain empty.json", 1, "not JSON"),
    ("explain list.json", 1, "not a report"),
    ("explain object.json", 1, "not a report"),
    ("explain deep.json", 1, "JSON"),
    ("explain binary.json", 1, "not JSON"),
    ("verify good.mlir", 2, "the second program is missing"),
    ("verify good.mlir good.mlir good.mlir", 2, "two programs are compared"),
    ("verify good.mlir none.mlir", 1, "no such file"),
    ("verify good.mlir type.mlir", 1, "type.mlir"),
    ("verify huge.mlir good.mlir", 1, "no machine can hold"),
    ("verify list.json", 1, "list.json"),
    ("verify object.json", 1, "object.json"),
    ("bisect good.mlir", 2, "one of B and -p PIPELINE is needed"),
    ("bisect good.mlir -p cze", 1, "unknown pass 'cze'"),
    ("bisect good.mlir good.mlir", 1, "does not say which passes made it"),
    ("zoo nothing", 1, "nothing"),
    ("zoo -o out.onnx", 1, "which model"),
    ("rules list nothing", 1, "no rule set 'nothing'"),
    ("rules list bad.rules", 1, "bad.rules:1:18"),
    ("rules paint", 2, "invalid choice"),
    ("bench good.mlir --against nothing", 1, "nothing"),
    ("completion fish", 2, "invalid choice"),
    ("view newer.json -o p.html", 1, "newer.json: .*another isoform: expected version 2, found 99"),
    ("view bare.json -o p.html", 1, "bare.json: this is not a report"),
    ("view good.mlir", 2, "-o"),
    ("view good.mlir -o p.txt", 1, "a page is written as PAGE.html"),
    ("view good.mlir -o none/p.html", 1, "its folder does not exist"),
    ("view noise.onnx -o p.html", 1, "noise.onnx"),
    ("view none.json -o p.html", 1, "No such file"),
    ("view good.mlir -o p.html --target z80", 1, "unknown target 'z80'"),
    ("tune", 2, "nothing to do"),
    ("tune good.mlir --trials 0", 2, "expected a positive whole number"),
    ("tune good.mlir --trials 1e99", 2, "expected a positive whole number"),
    ("tune good.mlir --ops good.mlir", 2, "exclude each other"),
    ("tune --ops none.txt", 1, "none.txt: cannot read file"),
    ("tune --merge none.db --db x.db", 1, "none.db: cannot read file"),
    ("bench good.mlir --seconds -1", 2, "expected seconds"),
    ("bench good.mlir --seconds nan", 2, "expected seconds"),
    ("bench good.mlir --threads 1000000", 1, "more threads than this machine can use"),
    ("optimize good.mlir --budget 1e309", 2, "expected seconds"),
    ("run zoo:dcgan --batch 0", 2, "expected a positive whole number"),
    ("run good.mlir --batch 4", 1, "only models of the zoo have a batch size"),
    ("run good.mlir --output o.txt", 1, "outputs are written as FILE.npz"),
    ("run mutual.mlir", 1, "calls itself"),
    ("run cut.mlir", 1, "cut.mlir:2"),
    ("run good.mlir --plugin raising.py --plugin raising.py", 1, "already a pass 'boom'"),
    ("optimize good.mlir --plugin raising.py --pipeline boom", 1, "failed: ValueError: its own"),
    ("optimize good.mlir --plugin raising.py --pipeline break-ir", 1, "not in the program"),
    ("bisect good.mlir --plugin raising.py -p boom", 1, "failed: ValueError: its own fault"),
    ("optimize good.mlir --rules noop.rules", 1, "noop.rules:3:8: rule a: .* no op 'bar'"),
    ("rules verify noop.rules", 1, "noop.rules:3:8: rule a: the graph dialect has no op 'bar'"),
    ("rules verify half.rules", 1, "half.rules:2:20: rule a"),
    ("rules verify unbound.rules", 1, "unbound.rules:1:"),
    ("rules generate --size 0", 2, "expected a positive whole number"),
    ("optimize good.mlir --precision fp3", 2, "invalid choice"),
    ("optimize good.mlir --precision f16 --precision-error nan", 2, "expected a relative error"),
    ("optimize good.mlir --emit nothing", 2, "invalid choice"),
    ("completion", 2, "shell"),
    ("completion bash --of nothing", 2, "invalid choice"),
]
CASES = [("isoform-opt", *case) for case in OPT] + [("isoform", *case) for case in CLI]


def test_there_are_150() -> None:
    assert len(CASES) >= 150
    assert len({(tool, text) for tool, text, *_ in CASES}) == len(CASES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    for name, content in FILES.items():
        data = content.encode() if isinstance(content, str) else content
        (made / name).write_bytes(data)
    for name in ("folder.mlir", "folder.onnx"):
        (made / name).mkdir()
    for name, target in (("loop", "loop"), ("dangling", "none"), ("link", "good")):
        (made / f"{name}.mlir").symlink_to(f"{target}.mlir")
    np.savez(made / "wrong.npz", z=np.zeros(4, np.float32))
    np.savez(made / "shape.npz", x=np.zeros(5, np.float32))
    np.savez(made / "dtype.npz", x=np.zeros(4, np.int32))
    np.savez(made / "pickled.npz", x=np.array([{}], dtype=object))
    return made


@pytest.mark.parametrize(
    ("tool", "text", "status", "message"), CASES, ids=[f"{c[0]} {c[1]}" for c in CASES]
)
def test_a_wrong_invocation_is_refused_in_words(
    tool: str, text: str, status: int, message: str, folder: Path,
    capsys: Capture, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"")))
    before = sorted(os.listdir(folder))
    run = opt.main if tool == "isoform-opt" else cli.main
    assert run(text.split()) == status
    out, err = capsys.readouterr()
    if status == 0:
        return
    prefix = "error: " if tool == "isoform-opt" else "isoform: error: "
    lines = [line for line in err.splitlines() if not line.startswith("isoform: warning")]
    told = "\n".join(lines) or out  # `check` tells what does not run on stdout, and exits 1
    assert re.search(message, told), told
    assert "Traceback" not in err
    assert "a bug; --traceback" not in err
    assert all(line.startswith(prefix) for line in lines), err
    assert sorted(os.listdir(folder)) == before, "nothing is written"


def test_json_of_a_failed_check_is_json(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert cli.main(["check", "linalg.mlir", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)
    assert issubclass(isoform.UserError, Exception)


def test_check_does_not_call_native_what_does_not_run(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert cli.main(["check", "linalg.mlir"]) == 1
    out = capsys.readouterr().out
    assert "unsupported: math.exp 'math.exp %y'" in out
    assert "nothing blocks optimisation" not in out
