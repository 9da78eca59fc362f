"""Work on other machines: the executor's interface over a Dask cluster (extra `cluster`).

A worker that dies loses nothing: the scheduler hands its item to another one. Workers must have
the code of this process, which is checked before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from .errors import UserError
from .executor import LostError, name_of
from .files import hash_of_sources

A = TypeVar("A")
B = TypeVar("B")
# Seconds to wait for the scheduler, and for a first worker.
PATIENCE = 30


def code_version() -> str:
    """A hash of this package's sources, the same for equal code on any machine."""
    root = Path(__file__).resolve().parents[1]
    return hash_of_sources([root / name for name in ("dialects", "lowering", "passes")])[:16]


@dataclass(frozen=True)
class ClusterExecutor:
    """The workers of a Dask cluster; as `LocalExecutor`."""

    client: Any
    address: str

    def run(
        self,
        function: Callable[[A], B],
        items: Sequence[A],
        done: Callable[[int, B], None],
        lost: Callable[[int, LostError], None] | None = None,
    ) -> None:
        """Run the function on every item, each on one worker, in any order.

        Raises: what the function or `done` raises; UserError if the scheduler is gone, or an item
            ended several workers and `lost` is None.
        """
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        work = [(*name_of(function), item) for item in items]
        futures = self.client.map(call, work, pure=False, retries=0)
        numbers = {future.key: k for k, future in enumerate(futures)}
        try:
            for future in as_completed(futures, loop=self.client.loop):
                number = numbers[future.key]
                if future.status == "cancelled":
                    raise UserError("the scheduler is gone", where=self.address)
                error = future.exception()
                if isinstance(error, KilledWorker):
                    if lost is None:
                        raise UserError("an item ended several workers", where=self.address)
                    lost(number, LostError("died"))
                elif error is not None:
                    raise error
                else:
                    done(number, future.result())
        finally:
            self.client.cancel(futures)


@contextmanager
def cluster(address: str) -> Generator[ClusterExecutor]:
    """The cluster of a scheduler.

    Raises:
        UserError: distributed is not installed, nothing answers there, no worker comes, or one has
            other code.
    """
    try:
        from distributed import Client
    except ImportError as error:
        hint = "pip install 'isoform[cluster]'"
        raise UserError("--cluster needs dask.distributed", hint=hint) from error
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise UserError("no Dask scheduler answers", where=address) from error
    with client:
        _check_workers(client, address)
        yield ClusterExecutor(client, address)


def _check_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        hint = f"start one: dask worker {address} --nworkers 1 --nthreads 1"
        raise UserError("the cluster has no workers", where=address, hint=hint) from error
    here = code_version()
    try:
        found: dict[str, str] = client.run(code_version)
    except ImportError as error:
        raise UserError("a worker lacks isoform", where=address, found=error) from error
    for worker, version in sorted(found.items()):
        if version != here:
            raise UserError("a worker has other code", where=worker, expected=here, found=version)


def call(work: tuple[str, str, Any]) -> Any:
    """On a worker: call a function by its name."""
    module, name, item = work
    return getattr(import_module(module), name)(item)
