"""Stop a user's plug-in that does not stop by itself, soon after its time limit or a signal.

The plug-in runs in a daemon thread while the caller waits. Once its time is over it has GRACE_S to
return; then ``PluginStop`` is raised in its thread, which ends Python code, and after ABANDON_S the
thread is left alone, because an exception cannot reach one that sleeps or runs compiled code.
Built-in plug-ins keep to their time and run in the caller's thread, as do the cells of a study,
whose processes are killed from outside.
"""

from __future__ import annotations

import contextvars
import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from optbench.plugins.author_errors import is_built_in, label

if TYPE_CHECKING:
    from optbench.plugins.protocol import Run, Solver
    from optbench.shapes.protocol.shape import AnyInstance

T = TypeVar("T")
# Seconds after the end of the time: to return, and until the thread is left alone.
GRACE_S, ABANDON_S = 0.4, 0.8
# Seconds between two looks at the clock, and between two exceptions.
LOOK_S = 0.05

_killed_from_outside: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "killed_from_outside", default=False
)


class PluginStop(BaseException):
    """Raised in the thread of a plug-in whose time is over; ``except Exception`` lets it pass."""


@dataclass(frozen=True)
class Returned(Generic[T]):
    """What the work returned."""

    value: T


@contextmanager
def killed_from_outside() -> Iterator[None]:
    """Within this context another process ends plug-ins that do not stop; nothing is watched."""
    token = _killed_from_outside.set(True)
    try:
        yield
    finally:
        _killed_from_outside.reset(token)


def is_watched(plugin: Any) -> bool:
    """Whether a plug-in is stopped here if it does not stop by itself."""
    return not _killed_from_outside.get() and not is_built_in(plugin)


def solve_in_time(method: Solver, instance: AnyInstance, run: Run) -> Any:
    """What ``method.solve`` returns; None, with the reason in ``run``, where it was stopped."""
    if not is_watched(method):
        return method.solve(instance, run)
    work = Watched(
        partial(method.solve, instance, run),
        lambda: run.time_left() > 0,
        run.stop_requested,
        run.reporting,
    )
    done = work.wait()
    if done is not None:
        return done.value
    run.expel(work.thread)
    interrupted = run.stop_requested.is_set()
    run.report_termination("interrupted" if interrupted else "time_limit")
    when = "the interruption" if interrupted else f"its time limit of {run.time_limit_s:g} s"
    remedy = "look at run.time_left() in its loop, and report each schedule when it is found"
    if hasattr(method, "play"):
        remedy = "give it more time, or use `optbench simulate`, which shows what it has decided"
    run.report_message(
        f"{label(method)} went on after {when}, was stopped, and had reported no schedule; {remedy}"
    )
    return None


@dataclass
class Watched(Generic[T]):
    """Work in a thread of its own, which is stopped when ``has_time`` says no."""

    work: Callable[[], T]
    has_time: Callable[[], bool]
    stop: threading.Event
    # Held while the work changes what must stay whole; it is not stopped meanwhile.
    whole: Any = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._ended = threading.Event()
        self._leaving = threading.Lock()
        self._has_left = False
        self._over_since: float | None = None
        self._value: T | None = None
        self._error: BaseException | None = None
        context = contextvars.copy_context()
        self.thread = threading.Thread(
            target=self._run, args=(context,), name="optbench-plugin", daemon=True
        )

    def wait(self) -> Returned[T] | None:
        """The result, or None if the work had to be stopped; its exceptions are raised here."""
        self.thread.start()
        while not self._ended.is_set():
            try:
                if not self._ended.wait(LOOK_S) and self._is_left_alone():
                    return None
            except KeyboardInterrupt:
                if self.stop.is_set():  # the second Ctrl-C
                    self._raise_in_thread()
                    raise
                self.stop.set()
            except PluginStop:  # this work is itself part of work that has to stop
                self._raise_in_thread()
                raise
        if isinstance(self._error, PluginStop):
            return None
        if self._error is not None:
            raise self._error
        return Returned(self._value)  # type: ignore[arg-type]

    def _is_left_alone(self) -> bool:
        """Stop the work where its time is over; whether it could not be stopped for too long."""
        now = time.monotonic()
        self._over_since = None if self.has_time() else self._over_since or now
        late_s = 0.0 if self._over_since is None else now - self._over_since
        if late_s <= GRACE_S or not self.whole.acquire(blocking=False):
            return False
        try:
            self._raise_in_thread()
        finally:
            self.whole.release()
        return late_s > ABANDON_S

    def _run(self, context: contextvars.Context) -> None:
        try:
            try:
                self._value = context.run(self.work)
            except BaseException as error:
                self._error = error
            with self._leaving:
                self._has_left = True
        except PluginStop as late:  # it was raised just when the work had ended
            self._error = self._error or late
        self._ended.set()

    def _raise_in_thread(self) -> None:
        """Raise ``PluginStop`` in the thread as soon as it runs Python code."""
        with self._leaving:
            if not self._has_left and self.thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self.thread.ident), ctypes.py_object(PluginStop)
                )
