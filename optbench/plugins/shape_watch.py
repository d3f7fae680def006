"""Stop a method of a user's shape that does not end, soon after the time limit or a signal.

The whole call of ``solve`` runs in a watched thread: a shape's ``verify``, ``model``, ``encode``
and ``bounds`` are called before, during and after the solver's own time, and in the midst of
reports, which nothing else may cut short. The frames of the threads show whether a method of the
shape is running. Only that is stopped; the core and built-in solvers keep to their time.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from functools import partial
from types import CodeType, FrameType
from typing import Any, Protocol

from optbench.errors import PluginError
from optbench.model.result import Result
from optbench.plugins.author_errors import is_built_in
from optbench.plugins.overtime import ABANDON_S, GRACE_S, PluginStop, T, Watched
from optbench.plugins.protocol import Run
from optbench.shapes.protocol.shape import Decision, Shape

# Every call of a shape's method may take this long, even one that begins when the time is over.
LEAST_S = 0.5


class Solving(Protocol):
    """One call of ``solve``: its levels so far, and the method of the shape that was stopped."""

    runs: list[Run]
    stop: threading.Event
    stuck: str | None

    @property
    def shape(self) -> Shape: ...
    def solved(self) -> Decision | None: ...
    def assemble(self, schedule: Decision | None) -> Result: ...
    def begin_run(self, instance: Any, k: int, start: Decision | None) -> Run: ...


def solve_watched(solving: Solving, instance: Any, time_limit_s: float | None) -> Result:
    """The result of a call of ``solve``; where a method of the shape was stopped, what was found
    before, with a message that names the method.
    """
    began = time.monotonic()

    def has_time() -> bool:
        if solving.stop.is_set():
            return False
        if not solving.runs:
            return time_limit_s is None or time.monotonic() - began < time_limit_s
        run = solving.runs[-1]
        if run.closed_at is None:
            return run.time_left() > 0
        return time.perf_counter() - run.closed_at < max(LEAST_S, run.time_left())

    done = ShapeWatch(
        lambda: solving.assemble(solving.solved()), has_time, solving.stop, solving=solving
    ).wait()
    if done is not None:
        return done.value
    words = solving.stuck or "the run was stopped"
    if not solving.runs:
        solving.begin_run(instance, 0, None)
    run = solving.runs[-1]
    if run.closed_at is None:
        run.close()
    run.report_termination("interrupted" if solving.stop.is_set() else "time_limit")
    best = next((each.best for each in reversed(solving.runs) if each.best is not None), None)
    again = partial(solving.assemble, best)
    result = ShapeWatch(again, lambda: False, solving.stop, solving=solving).wait()
    if result is None:
        raise PluginError(words)
    wall_s = max(result.value.wall_s, round(run.elapsed_s(), 6))
    if not run.trajectory and run.elapsed_s() < LEAST_S:  # it was stopped before the solver began
        wall_s = round(time.monotonic() - began, 6)
    return replace(result.value, message=words, wall_s=wall_s)


@dataclass
class ShapeWatch(Watched[T]):
    """Work that is stopped while it is in a method of a user's shape, once its time is over."""

    solving: Any = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._codes = author_methods(self.solving.shape)
        self._files = {code.co_filename for code in self._codes}
        # The call that the last look has seen. Its frame is kept: no other one can be mistaken
        # for it.
        self._call: FrameType | None = None
        self._called_at = 0.0

    def _is_left_alone(self) -> bool:
        now = time.monotonic()
        self._over_since = None if self.has_time() else self._over_since or now
        thread, call, line = self._author_call()
        if call is not self._call:
            self._call, self._called_at = call, now
        if call is None or thread is None or self._over_since is None:
            return False
        late_s, lasted_s = now - self._over_since, now - self._called_at
        over_s = min(late_s - GRACE_S, lasted_s - LEAST_S - GRACE_S)
        if over_s <= 0:
            return False
        self.solving.stuck = self.solving.stuck or self._words(call, line)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread), ctypes.py_object(PluginStop)
        )
        if over_s <= ABANDON_S - GRACE_S:
            return False
        self._raise_in_thread()
        return True

    def _author_call(self) -> tuple[int | None, FrameType | None, str]:
        """Thread, frame and current line of the shape's method that is running, if one is: the
        one that the core called, and the line that it has reached in the author's file.
        """
        run = self.solving.runs[-1] if self.solving.runs else None
        frames = sys._current_frames()
        for thread in (self.thread.ident, None if run is None else run.reporter):
            frame = frames.get(thread) if thread is not None else None
            call, line = None, ""
            while frame is not None:
                if not line and frame.f_code.co_filename in self._files:
                    line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                call = frame if frame.f_code in self._codes else call
                frame = frame.f_back
            if call is not None:
                return thread, call, line
        return None, None, ""

    def _words(self, call: FrameType, line: str) -> str:
        run = self.solving.runs[-1] if self.solving.runs else None
        limit_s = self.solving.budget.time_limit_s if run is None else run.time_limit_s
        ended = self.stop.is_set() or limit_s is None
        when = "the interruption" if ended else f"the time limit of {limit_s:g} s"
        return (
            f"shape {self.solving.shape.name!r}: {line}: {call.f_code.co_name}() went on after "
            f"{when} and was stopped; look for a loop without an end, or give it more time"
        )


def author_methods(shape: Any) -> set[CodeType]:
    """The code of the methods that a shape's author wrote."""
    found = set()
    for cls in type(shape).__mro__:
        if cls is object or is_built_in(cls):
            continue
        for value in vars(cls).values():
            value = getattr(value, "fget", None) or getattr(value, "__func__", value)
            code = getattr(value, "__code__", None)
            if isinstance(code, CodeType):
                found.add(code)
    return found
