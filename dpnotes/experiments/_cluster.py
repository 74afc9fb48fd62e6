"""Units on other machines: tasks of a Dask cluster, whose results the caller writes down.

A worker reads and writes no results. It gets a unit, the command line and what all units rest on,
and sends back what the unit's line says. So a worker that is killed costs the unit that it was at,
which Dask gives to another one; and where the scheduler goes away, the file holds every unit that
was finished, and a second start measures the others.

The caller holds the lock of each unit that it sent, so that other processes on its file leave
these alone, as `_units` has it.
"""

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from dpnotes.experiments import _units
from dpnotes.experiments._units import Layout, Report, RunError, Unit

if TYPE_CHECKING:
    from distributed import Client, Future

PATIENCE = 10.0  # seconds in which a scheduler has to answer


class Engine(NamedTuple):
    """Who does the work.

    Attributes
    ----------
    call : callable
        Takes a function and its arguments, and returns what the function does.
    measure_all : callable
        As `_units.measure_all`.
    """

    call: Callable[..., Any]
    measure_all: Callable[..., None]


def _call(function: Callable, *arguments: object) -> Any:  # noqa: ANN401
    return function(*arguments)


HERE = Engine(_call, _units.measure_all)


@contextmanager
def engine(address: str | None, report: Report) -> Iterator[Engine]:
    """Yield who does the work: this process, or the cluster whose scheduler has an address.

    Raises
    ------
    RunError
        If dask.distributed is not installed, or no scheduler answers there within `PATIENCE`.
    """
    if address is None:
        yield HERE
        return
    with _connected(address) as client:
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        report(f"{address}: {workers or 'no'} workers{'' if workers else ' yet'}")
        cluster = _Cluster(address, client)
        yield Engine(cluster.call, cluster.measure_all)


def _connected(address: str) -> "Client":
    """Return a client; a thread of its own connects, as some answers keep it waiting for ever."""
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise RunError(
            "--scheduler needs dask.distributed: pip install dpnotes[cluster]"
        ) from error
    found: SimpleQueue[Client | str] = SimpleQueue()

    def connect() -> None:
        try:
            found.put(Client(address, timeout=PATIENCE, set_as_default=False))
            return
        except Exception as error:
            found.put(str(error))
        # A client that failed stops its loop when it is collected. That takes a lock of Dask's,
        # which must not be taken twice, so it happens here, where nobody has it.
        gc.collect()

    threading.Thread(target=connect, daemon=True).start()
    try:
        client = found.get(timeout=PATIENCE + 1)
    except Empty:
        client = f"no answer in {PATIENCE:g} seconds"
    if isinstance(client, str):
        raise RunError(
            "--scheduler must be the address of a Dask scheduler that answers, such as "
            f"tcp://host:8786, got {address!r}: {client}"
        )
    return client


class _Cluster(NamedTuple):
    """A scheduler, and the connection to it."""

    address: str
    client: "Client"

    def call(self, function: Callable, *arguments: object) -> Any:  # noqa: ANN401
        """Let some worker call a function."""
        return self._result(self.client.submit(function, *arguments, pure=False))

    def _result(self, future: "Future") -> Any:  # noqa: ANN401
        try:
            return future.result()
        except CancelledError as error:
            raise RunError(
                f"--scheduler {self.address} went away, or was started anew. What was measured is "
                "in the file, and the same command measures what it lacks"
            ) from error

    def measure_all(
        self,
        path: Path,
        layout: Layout,
        units: Sequence[Unit],
        measure: Callable[[Unit], dict[str, Any]],
        report: Report,
    ) -> None:
        """Measure what a file lacks, as `_units.measure_all` does; `measure` must be picklable.

        Raises
        ------
        RunError
            At the end, if units failed; at once, if the scheduler goes away.
        """
        results = _units.Results(path, layout, report)
        failed, taken = self._measure(results, units, measure, patient=False)
        if taken:
            report(f"waiting for {len(taken)} units that other processes measure")
        # One by one: who waits with units in hand may wait for somebody who waits for these.
        for unit in taken:
            failed += self._measure(results, [unit], measure, patient=True)[0]
        if failed:
            raise RunError(f"{len(failed)} of {len(units)} units failed; the file has the others")

    def _measure(
        self,
        results: _units.Results,
        units: Sequence[Unit],
        measure: Callable[[Unit], dict[str, Any]],
        *,
        patient: bool,
    ) -> tuple[list[Unit], list[Unit]]:
        """Measure units; return those that failed, and those that others have in hand."""
        sent, taken = {}, []
        with ExitStack() as claims:
            for unit in units:
                if results.lacking(unit) is None:
                    continue
                if not claims.enter_context(results.claimed(unit, patient=patient)):
                    taken.append(unit)
                elif asked := results.lacking(unit):
                    sent[self.client.submit(measure, asked, pure=False)] = unit
            return self._write_down(results, sent), taken

    def _write_down(self, results: _units.Results, sent: dict["Future", Unit]) -> list[Unit]:
        """Write each unit down as soon as it is finished; return those that failed."""
        from distributed import as_completed

        failed = []
        for future in as_completed(list(sent), loop=self.client.loop):
            unit = sent.pop(future)
            name = _units.describe(unit.key)
            try:
                results.add(unit, self._result(future))
            except RunError:
                raise
            except Exception as error:
                failed.append(unit)
                results.report(f"{name}: failed, {type(error).__name__}: {error}")
            else:
                results.report(f"{name}: finished, {len(sent)} to go")
        return failed
