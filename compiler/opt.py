"""`isoform-opt`: read IR, run a pipeline of passes, print IR; xDSL's driver with one-line errors.

IR goes to stdout or into the output file, everything else to stderr. A user's mistake is one line
on stderr with its location and a hint, exit 1 (2 for the command line itself).
"""

import argparse
import re
import sys
import traceback
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.frontend.mlir import MLIRFrontend
from xdsl.ir import Attribute
from xdsl.utils.arg_spec import ArgSpec, parse_spec
from xdsl.utils.exceptions import (
    ArgSpecParseError,
    DiagnosticException,
    ParseError,
    ShrinkException,
)
from xdsl.xdsl_opt_main import xDSLOptMain

from ..dialects.errors import UsageError, UserError, did_you_mean, one_line, raise_all
from ..dialects.files import cannot, check_outputs, similar_name, write_whole
from ..dialects.floats import Allowed
from .checks.rewrite_recorder import RewriteRecorder
from .checks.verify_module import verify_module
from .commands.diagnostics import show_errors
from .commands.dialect_help import help_dialect, list_dialects
from .commands.expected_errors import Expectation, expectations, mismatches
from .commands.opt_arguments import EXAMPLES, ArgumentParser, add_isoform_flags
from .commands.opt_instruments import Instruments
from .commands.pass_help import help_pass, list_passes
from .commands.process_errors import OURS_NOT, check_streams, crash, drop_output, not_ours
from .commands.reproducer import pipeline_in, pipeline_text
from .commands.timing_tree import PIPELINE, TimingTree
from .frontends.module_text import NamePrinter
from .frontends.source import SourceLocations, SourceText, parse_source
from .pass_manager import AfterPass, make_passes, run_pipeline
from .plugin import extend, kernels_of, load_plugin
from .registry import UNIVERSE, make_context, multiverse
from .reports.float_policy import permitted

if TYPE_CHECKING:
    from .commands.opt_weights import ModuleWeights

_SEPARATOR = re.compile(rb"^[ \t]*// -----[^\n]*$", re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `isoform-opt` and return its exit status: 0, 1 for a user's error, 2 for wrong usage."""
    arguments = sys.argv[1:] if arguments is None else arguments
    driver = None
    try:
        check_streams()
        driver = IsoformOpt(arguments)
        return driver.execute()
    except UserError as error:
        if "--traceback" in arguments:
            traceback.print_exc()
        source = sys.stderr.isatty() or "--show-source" in arguments
        show_errors(error, "error: ", {} if driver is None else driver.texts, source)
        return 2 if isinstance(error, UsageError) else 1
    except BrokenPipeError:
        drop_output()
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except OURS_NOT as error:
        if "--traceback" in arguments:
            traceback.print_exc()
        print(f"error: {not_ours(error)}", file=sys.stderr)
        return 1
    except Exception as error:  # noqa: BLE001 - the last stop: a bug, in a pass or here, is still one line
        if "--traceback" in arguments:
            traceback.print_exc()
        print(f"error: {crash(error)}", file=sys.stderr)
        return 1


class IsoformOpt(xDSLOptMain):
    """The driver: every flag of xDSL's, and plug-in files, explanations, checks and limits."""

    version_format = "isoform-opt built on xdsl {xdsl_version}"

    def __init__(self, arguments: Sequence[str] | None = None) -> None:
        # xDSL's own __init__ prints usage and tracebacks; these are its steps without them.
        universe = multiverse()
        own_passes = list(UNIVERSE.all_passes)
        self.available_frontends = dict(universe.all_frontends)
        self.available_targets = dict(universe.all_targets)
        self.available_passes = dict(universe.all_passes)
        parser = self.argument_parser()
        self.args = parser.parse_args(arguments)
        self.plugins = [load_plugin(path) for path in cast(list[str], self.args.plugin)]
        for plugin in self.plugins:
            universe = extend(universe, plugin)
            own_passes += [p.name for p in plugin.passes]
        self.own_passes = own_passes
        self.available_targets = dict(universe.all_targets)
        self.available_passes = dict(universe.all_passes)
        self.ctx = make_context(universe)
        self.ctx.allow_unregistered = self.args.allow_unregistered_dialect
        self.target = _choice("-t", self.args.target, self.available_targets)
        allowed = Allowed(self.args.fast_math, self.args.strict_nan)
        self.passes = permitted(make_passes(self.args.passes, self.available_passes), allowed)
        self.recorder = RewriteRecorder()
        self.texts: dict[str, str] = {}
        self.timing = TimingTree()

    def argument_parser(self) -> ArgumentParser:
        """The parser of the command line."""
        parser = ArgumentParser("isoform-opt", description=__doc__, allow_abbrev=False)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = EXAMPLES
        self.register_all_arguments(parser)
        return parser

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """Add xDSL's flags and ours."""
        super().register_all_arguments(arg_parser)
        add_isoform_flags(arg_parser)

    def run(self) -> None:
        """Run, and exit with the status if it is not 0, as callers of xDSL's driver expect."""
        if status := self.execute():
            sys.exit(status)

    def execute(self) -> int:
        """Do what the flags ask and return the exit status.

        Raises: UserError
        """
        if self.args.list_passes:
            sys.stdout.write(list_passes(self.available_passes, self.own_passes))
            return 0
        if self.args.help_pass is not None:
            sys.stdout.write(help_pass(self.args.help_pass, self.available_passes))
            return 0
        if self.args.list_dialects:
            added = [dialect.name for plugin in self.plugins for dialect in plugin.dialects]
            sys.stdout.write(list_dialects(self.ctx.registered_dialect_names, added))
            return 0
        if self.args.help_dialect is not None:
            sys.stdout.write(help_dialect(self.args.help_dialect, self.ctx))
            return 0
        self.check_certificate_flags()
        about = (self.args.certificate, self.args.reproducer)
        check_outputs([self.args.output_file, *about], (*self.args.plugin, self.args.weights))
        check_outputs(about, [self.args.input_file])  # -o may take its place
        if self.args.dump_pass_pipeline:
            print(f"Pass Manager: {pipeline_text(self.passes)}", file=sys.stderr)
        try:
            with kernels_of(self.plugins), unverified_attributes(self.args.disable_verify):
                status = self.run_chunks(self.read_chunks())
        except ShrinkException:
            if not self.args.shrink:
                raise
            print("Success, can shrink")
            return 0
        if self.args.shrink:
            print("Failure, can't shrink")
            return 1
        if self.args.certificate is not None and status == 0:
            self.certify()
        if self.args.timing:
            print(self.timing.text(), file=sys.stderr)
        return status

    def check_certificate_flags(self) -> None:
        """Refuse a certificate without one input and one output file. Raises UsageError."""
        files = (self.args.input_file, self.args.output_file)
        if self.args.certificate is None:
            return
        if any(f in (None, "-") for f in files) or self.args.split_input_file:
            hint = "isoform-opt IN.mlir -p ... -o OUT.mlir --certificate C.json"
            raise UsageError("a certificate needs one input file and -o", hint=hint)

    def certify(self) -> None:
        """Compare the output file with the input file and write the certificate."""
        from .reports.certificate import CertifiedWork, NamedModel, certify

        source, result = NamedModel(self.args.input_file), Path(self.args.output_file)
        rewrites = [{**vars(r), "proof": "verdict"} for r in self.recorder.all]
        work = CertifiedWork(self.args.passes or "", rewrites, seed=0)
        verdict = certify(source, result, work, Path(self.args.certificate))
        if not verdict.is_equal:
            print(f"{self.args.certificate}: {verdict.text()}", file=sys.stderr)

    def run_chunks(self, chunks: Sequence[SourceText]) -> int:
        """Process each chunk; write the output after all of them."""
        diagnostics = self.args.verify_diagnostics or self.args.parsing_diagnostics
        annotations = [expectations(c.text, c.name, c.line_offset) for c in chunks]
        if diagnostics and any(annotations):
            return self.run_annotated(chunks, annotations)
        outputs, caught, errors = list[str](), False, list[UserError]()
        for chunk in chunks:
            try:
                outputs.append(self.run_chunk(chunk))
            except UserError as error:
                if not diagnostics or not self.is_wanted(error):
                    errors.append(error)
                    continue
                caught = True
                outputs += [f"{found}\n" for found in (error, *error.also)]
        raise_all(errors)
        self.write(outputs)
        if diagnostics and not caught:
            raise UserError("no error was raised", where=self.get_input_name())
        return 0

    def run_annotated(
        self, chunks: Sequence[SourceText], annotations: list[list[Expectation]]
    ) -> int:
        """Process each chunk; succeed if the errors are the expected ones."""
        outputs, wrong = list[str](), list[UserError]()
        for chunk, expected in zip(chunks, annotations, strict=True):
            error = None
            try:
                outputs.append(self.run_chunk(chunk))
            except UserError as raised:
                error = raised
            wrong += mismatches(expected, [] if error is None else [error, *error.also])
        self.write(outputs)
        for error in wrong:
            print(f"error: {error}", file=sys.stderr)
        return 1 if wrong else 0

    def is_wanted(self, error: UserError) -> bool:
        """Whether a diagnostics flag asks to print this kind of error on stdout."""
        parsing = isinstance(error.__cause__, ParseError)
        flag = self.args.parsing_diagnostics if parsing else self.args.verify_diagnostics
        return cast(bool, flag)

    def run_chunk(self, source: SourceText) -> str:
        """Parse, run the passes, print."""
        with self.timing.part("Parser"):
            module, locations = self.parse(source)
        if self.args.run_reproducer:
            pipeline = pipeline_in(locations.resources, source.name)
            try:
                self.passes = make_passes(pipeline, self.available_passes)
            except UserError as error:
                if source.text.startswith("//") and "--plugin" in source.text.partition("\n")[0]:
                    error.hint = "its first line is the command, with its plug-ins"
                raise
        weights = self.weights_of(module)
        with self.timing.part(PIPELINE):
            self.apply_all(module, locations, weights)
        with self.timing.part("Output"):
            if weights is not None and self.target.name == "mlir":
                weights.store(module, self.args.output_file)
            text = self.output_resulting_program(module)
        if self.args.verify_roundtrip:
            self.check_roundtrip(text)
        return text

    def weights_of(self, module: ModuleOp) -> "ModuleWeights | None":
        """The weights that the module or `--weights` names; of one module, not of split input."""
        if self.args.split_input_file:
            return None
        if self.args.weights is None and "isoform.weights" not in module.attributes:
            return None
        from .commands.opt_weights import ModuleWeights  # loads numpy and the dialects: only here

        return ModuleWeights(module, self.args)

    def check_roundtrip(self, text: str) -> None:
        """Parse and print what was printed. Raises UserError where that gives another text."""
        name = self.get_input_name()
        module, _ = parse_source(self.ctx, SourceText(f"{name} (printed)", text))
        if self.output_resulting_program(module) != text:
            raise UserError("what was printed parses to another module", where=name)

    def read_chunks(self) -> list[SourceText]:
        """Read the input; split it at `// -----` lines if asked to."""
        path = cast(str | None, self.args.input_file)
        data = sys.stdin.buffer.read() if path is None or path == "-" else _read_input(path)
        pieces = _SEPARATOR.split(data) if self.args.split_input_file else [data]
        chunks, offset = list[SourceText](), 0
        for piece in pieces:
            chunks.append(SourceText.decode(self.get_input_name(), piece, offset))
            offset += piece.count(b"\n")
        self.texts = {self.get_input_name(): "// -----".join(c.text for c in chunks)}
        return chunks

    def parse(self, source: SourceText) -> tuple[ModuleOp, SourceLocations]:
        """Read one chunk with the frontend given by `-f` or by the file's extension."""
        path = cast(str | None, self.args.input_file)
        suffix = "mlir" if path is None or path == "-" else Path(path).suffix.removeprefix(".")
        if not self.args.frontend and suffix not in self.available_frontends:
            known = ", ".join(sorted(self.available_frontends))
            hint = f"-f NAME says it; known are {known}"
            raise UserError("its name does not tell the format", where=path, hint=hint)
        spec = _choice("-f", self.args.frontend or suffix, self.available_frontends)
        if spec.name == "mlir":
            frontend = MLIRFrontend.from_spec(spec)
            explicit = frontend.no_implicit_module or self.args.no_implicit_module
            return parse_source(self.ctx, source, implicit_module=not explicit)
        try:
            module = self.parse_chunk(BytesIO(source.text.encode()), suffix, source.line_offset)
        except ParseError as error:
            where = source.location(error.span.start)
            raise UserError(one_line(error.msg), where=where) from error
        if module is None:
            raise UserError(f"frontend '{spec.name}' gave no module", where=source.name)
        return module, SourceLocations(source)

    def apply_all(
        self, module: ModuleOp, locations: SourceLocations, weights: "ModuleWeights | None"
    ) -> None:
        """Apply the pipeline, verify before it and after each pass, and report on stderr."""
        check = self.checker(module, locations, weights) if self.args.check else None
        watch = Instruments(self.args, self.passes, module, check, self.recorder, self.timing)
        run_pipeline(
            module,
            self.passes,
            self.ctx if weights is None else weights.context(self.ctx),
            verify=not self.args.disable_verify,
            verify_each=not self.args.no_verify_each,
            before_pass=watch.before,
            after_pass=watch.after,
            after_failure=watch.failed,
            max_rewrites=self.args.max_rewrites,
            place_of=locations.of,
            observer=None if self.args.certificate is None else self.recorder,
        )

    def checker(
        self, module: ModuleOp, locations: SourceLocations, weights: "ModuleWeights | None"
    ) -> AfterPass:
        """Remember the verified program, to compare it after each pass."""
        from .checks.equality_check import (
            check_after_each_pass,  # loads numpy and the dialects: only here
        )

        if not self.args.disable_verify:
            verify_module(module, locations.of)
        known = None if weights is None else weights.weights
        return check_after_each_pass(module, known, say=self.args.explain)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """Print the module for the target, ending in one newline.

        Raises: UserError where the target cannot express it.
        """
        try:
            text = self.printed(prog)
        except (DiagnosticException, NotImplementedError) as error:
            raise UserError(one_line(str(error)), where=f"target '{self.target.name}'") from error
        return text.rstrip("\n") + "\n"

    def printed(self, prog: ModuleOp) -> str:
        """The module's text; as IR with its known locations, unless flags say otherwise."""
        args = self.args
        plain = not (args.print_debuginfo or args.no_locations or args.syntax_highlight)
        if self.target.name != "mlir" or not plain or self.target.parameters:
            return super().output_resulting_program(prog)
        out = StringIO()
        printer = NamePrinter(
            out,
            print_generic_format=args.print_op_generic,
            print_properties_as_attributes=args.print_no_properties,
        )
        printer.print_op(prog)
        printer.print_metadata(self.ctx.loaded_dialects)
        return out.getvalue()

    def write(self, outputs: Iterable[str]) -> None:
        """Write the chunks' outputs to stdout or into the output file."""
        text = "// -----\n".join(outputs)
        path = cast(str | None, self.args.output_file)
        if path is None or path == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            write_whole(path, text)


def argument_parser() -> ArgumentParser:
    """The parser of `isoform-opt`, for completion."""
    return IsoformOpt([]).argument_parser()


@contextmanager
def unverified_attributes(active: bool) -> Generator[None]:
    """Allow attributes that do not verify in the block (`--disable-verify`)."""
    verifying = Attribute.__post_init__
    if active:
        Attribute.__post_init__ = _accept
    try:
        yield
    finally:
        Attribute.__post_init__ = verifying


def _accept(self: Attribute) -> None:
    """Verify nothing."""


def _read_input(path: str) -> bytes:
    """Read the input file; if it is missing, suggest a similar name beside it."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, hint=similar_name(path)) from error
    except OSError as error:
        raise cannot("read", path, error) from error


def _choice(flag: str, text: str, known: Iterable[str]) -> ArgSpec:
    """Parse `name{option=1}` and check the name.

    Raises: UsageError
    """
    known = sorted(known)
    try:
        spec = parse_spec(text)
    except ArgSpecParseError as error:
        raise UsageError(f"malformed value '{text}'", where=flag) from error
    if spec.name not in known:
        hint = did_you_mean(spec.name, known) or f"known are {', '.join(known)}"
        raise UsageError(f"unknown name '{spec.name}'", where=flag, hint=hint)
    return spec


if __name__ == "__main__":
    sys.exit(main())
