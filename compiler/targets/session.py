"""A compiled program: call it with arrays, from any number of threads."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...dialects import reference
from ...dialects.cuts import Cuts, cut
from ...dialects.errors import UserError, did_you_mean
from ...dialects.program import Program
from ...dialects.program_summary import megabytes
from ...dialects.types import Array, to_numpy
from ...lowering.kernel_to_cpu.runtime.cores import physical_cores
from ..commands.inputs import draw_inputs
from .session_folder import save_session
from .value_info import ValueInfo, check_inputs, check_out

if TYPE_CHECKING:
    from .profile import Profile


class Runner(Protocol):
    """Executes a program: a target's session, or the reference.

    A runner that reads arrays on a device has a method `as_array`. It converts a caller's array for
    the checks; others use numpy's `asarray`.
    """

    def run(self, inputs: dict[str, Array], /) -> dict[str, Array]:
        """Compute outputs by name from inputs by name, whose types and shapes were checked.

        Threads may call it at the same time; the runner serialises them if it must.
        """
        ...


@dataclass(frozen=True)
class ReferenceRunner:
    """Evaluates the program's meaning in float64 and rounds to the outputs' dtypes."""

    program: Program

    def run(self, inputs: dict[str, Array], /) -> dict[str, Array]:
        """Evaluate by `dialects.reference`."""
        found = reference.run(self.program, inputs)
        types = self.program.outputs
        with np.errstate(over="ignore"):
            return {k: v.astype(to_numpy(types[k].element_type)) for k, v in found.items()}


class Session:
    """Runs one program.

    Example:
        session = isoform.compile(program)
        outputs = session(x=array)                  # a dict by output name
        y, = session.run(["y"], {"x": array})       # a list, as in onnxruntime
    """

    def __init__(self, program: Program, runner: Runner) -> None:
        self.program = program
        self.runner = runner
        defaults = program.defaults
        self.inputs = tuple(ValueInfo.of(n, t, n in defaults) for n, t in program.inputs.items())
        types = program.outputs
        self._cuts: Cuts = program.cuts
        dims = dict(self._cuts.values())
        self.outputs = tuple(
            ValueInfo.of(name, types[name]).cut(dims.get(name))
            for name in program.output_names
            if name not in self._cuts
        )
        self._defaults = {name: program.weights[key] for name, key in defaults.items()}
        self._lock = threading.Lock()
        self._closed = False

    def __call__(self, /, *arrays: Array, **named: Array) -> dict[str, Array]:
        """Run on arrays in the inputs' order, by name, or both; outputs by name.

        Inputs with a default stand last and may be left out.

        Raises:
            UserError: an input is missing, unknown, or of another dtype or shape.
        """
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            raise UserError("inputs are given in order or by name", hint="session(**inputs)")
        if len(arrays) > len(self.inputs):
            raise UserError("too many inputs", expected=len(self.inputs), found=len(arrays))
        feeds: dict[str, Array] = {
            info.name: array for info, array in zip(self.inputs, arrays, strict=False)
        }
        for name, array in named.items():
            if name in feeds:
                raise UserError(f"input '{name}' is given twice")
            feeds[name] = array
        return self._run(feeds)

    def run(
        self,
        names: Sequence[str] | None,
        feeds: Mapping[str, Array],
        out: Mapping[str, Array] | None = None,
    ) -> list[Array]:
        """Run on `feeds` and return the outputs called `names` (None: all), in that order.

        Args:
            out: arrays by output name that these outputs are written into, and that are returned.
                Kernels write into those at addresses that 64 divides; into others the result is
                copied.

        Raises:
            UserError: as `__call__`, for an unknown output name, and for an array in `out` that
                does not fit or cannot be written.
        """
        known = self._output_names
        wanted = known if names is None else names
        for name in () if names is None else names:
            if name not in known:
                raise UserError(f"there is no output '{name}'", hint=did_you_mean(name, known))
        outputs = self._run(feeds, out)
        return [outputs[name] for name in wanted]

    @cached_property
    def _output_names(self) -> list[str]:
        return [info.name for info in self.outputs]

    @property
    def algorithms(self) -> list[dict[str, Any]]:
        """Where another than the direct algorithm was chosen: rule, place, delta (s), error."""
        return list(getattr(self.runner, "notes", None) or [])

    def bound(self, feeds: Mapping[str, Array]) -> tuple[Session, Mapping[str, Array]]:
        """The session that runs these arrays, and those of them that it takes: this one, all."""
        return self, feeds

    def __repr__(self) -> str:
        return "\n".join([self._title(), *(f"  {kind}{info}" for kind, info in self._values())])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{'output' if kind else 'input'}</td><td>{escape(str(info))}</td></tr>"
            for kind, info in self._values()
        )
        return f"<b>{escape(self._title())}</b><table>{rows}</table>"

    def _values(self) -> list[tuple[str, ValueInfo]]:
        return [*(("", i) for i in self.inputs), *(("-> ", o) for o in self.outputs)]

    def _title(self) -> str:
        """What runs it: `Session on cpu, 2 threads: 12.3 MB packed weights, 1.1 MB arena`."""
        runner: Any = getattr(self, "runner", None)
        title = type(self).__name__ + (", closed" if self._closed else "")
        if hasattr(runner, "packed_bytes"):
            sizes = f"{megabytes(runner.packed_bytes)} packed weights"
            sizes += f", {megabytes(runner.arena_bytes)} arena"
            return f"{title} on cpu, {runner.pool.threads} thread(s): {sizes}"
        return title if runner is None else f"{title} ({type(runner).__name__})"

    @property
    def defaults(self) -> dict[str, Array]:
        """The values of inputs that may be left out."""
        return dict(self._defaults)

    @property
    def cuts(self) -> Cuts:
        """The outputs whose sizes depend on data."""
        return self._cuts

    def save(self, folder: str | Path) -> str:
        """Write native code, packed weights and plan into a folder; `isoform.open` reads it.

        Returns:
            The sha256 by which another user opens it.

        Raises:
            UserError: the target is not the CPU, an op has no native code, a file cannot be
                written.
        """
        return save_session(self, folder)

    def profile(self, feeds: Mapping[str, Array] | None = None, rounds: int = 20) -> Profile:
        """Measure each kernel on its own.

        Args:
            feeds: as in `run`; drawn from seed 0 where they are left out.
            rounds: runs, of which each kernel's median is taken.

        Raises:
            UserError: as `run`; the target is not the CPU.
        """
        from .profile import Profile

        if feeds is None:
            if not hasattr(self, "program"):
                raise UserError("a session without fixed shapes is measured on feeds")
            feeds = draw_inputs(self.program, 0)
        session, feeds = self.bound(feeds)
        runner: Any = session.runner
        if not hasattr(runner, "labels"):
            raise UserError("only sessions of the cpu have a profile")
        session.run(None, feeds)
        seconds = runner.execution.step_seconds(max(1, rounds))
        return Profile.of(runner.labels, seconds, runner.execution.pool.threads)

    def close(self) -> None:
        """Stop the runtime's threads and give its memory back; a closed session cannot run."""
        with self._lock:
            stop = None if self._closed else getattr(self.runner, "close", None)
            self._closed = True
            if stop is not None:
                stop()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(
        self, feeds: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        convert = getattr(self.runner, "as_array", np.asarray)
        checked = check_inputs(self.inputs, feeds, convert)
        if self._closed:
            raise UserError("this session is closed")
        if out:
            check_out(self.outputs, out)
            for name in dict(self._cuts.values()).keys() & out.keys():
                raise UserError(f"the size of output '{name}' depends on data: it cannot be given")
        inputs = self._defaults | checked if self._defaults else checked
        found = self._outputs(inputs, out or {})
        return cut(found, self._cuts) if self._cuts else found

    def _outputs(self, inputs: dict[str, Array], out: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs of the program, those in `out` written there."""
        if not out:
            return self.runner.run(inputs)
        into = getattr(self.runner, "run_into", None)
        if into is not None:
            return into(inputs, out)
        found = self.runner.run(inputs)
        for name, array in out.items():
            array[...] = found[name]
        return {**found, **out}


def usable_cores() -> int:
    """How many cores this process may run on; two processors of one core count once."""
    return physical_cores()
