"""The runner's side of tracking: a process follows the store, so that no cell waits for MLflow."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from optbench.store.run_store import Store
from optbench.study.declared import Study
from optbench.track.follower import END

# Seconds that the end of a study waits for unsent runs, the second value after Ctrl-C; and at most
# while runs still arrive.
WAIT_S, HURRIED_S, MOST_S = 15.0, 2.0, 60.0
LOOK_S = 0.1


class FollowerState:
    """The reports of the follower; ``unsent`` may be unknown, ``hurry`` shortens the wait."""

    def __init__(self) -> None:
        self.hurry = False
        self.done: int | None = None
        self.total: int | None = None
        self.trouble = ""
        self.gave_up = False

    @property
    def unsent(self) -> int | None:
        return None if self.done is None or self.total is None else self.total - self.done

    def read_line(self, line: str) -> None:
        for key, value in json.loads(line).items():
            setattr(self, key, value)

    @property
    def warning(self) -> str | None:
        """Return a message if runs are not in MLflow at the end."""
        if not (self.trouble or self.gave_up):
            return None
        number = f"{self.unsent} runs are" if self.unsent else "the study is"
        why = f" ({self.trouble})" if self.trouble else ""
        return f"{number} not in MLflow yet{why}; nothing is lost: `optbench sync` sends them"


OnWait = Callable[[FollowerState], None]


@contextmanager
def following(
    study: Study,
    store: Store,
    enabled: bool = True,
    wait_s: float = WAIT_S,
    on_wait: OnWait | None = None,
) -> Iterator[FollowerState]:
    """Send the study's cells while the body runs them, and at its end wait at most ``wait_s`` for
    the rest.

    ``on_wait`` is called while waiting. The follower ends with this process, and immediately when
    the body raises.
    """
    state = FollowerState()
    if not enabled:
        yield state
        return
    words = [
        sys.executable,
        "-m",
        "optbench.track.follower",
        study.name,
        study.config_hash,
        str(store.folder),
    ]
    pipe = subprocess.PIPE
    # The runner handles Ctrl-C and signals the end of the study.
    with subprocess.Popen(
        words,
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
        start_new_session=True,
    ) as child:
        listener = threading.Thread(target=_listen, args=(child, state), daemon=True)
        listener.start()
        try:
            yield state
            quick = min(wait_s, HURRIED_S)
            _wait(
                child,
                state,
                *((quick, quick) if state.hurry else (wait_s, max(wait_s, MOST_S))),
                on_wait,
            )
        finally:
            child.kill()
            child.wait()
            listener.join()


def _listen(child: subprocess.Popen[str], state: FollowerState) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("{"):
            with suppress(ValueError):  # a library may also print
                state.read_line(line)


def _wait(
    child: subprocess.Popen[str],
    state: FollowerState,
    wait_s: float,
    most_s: float,
    on_wait: OnWait | None,
) -> None:
    assert child.stdin is not None
    began, seen = time.monotonic(), state.done
    deadline = began + wait_s
    try:
        child.stdin.write(f"{END}\n")
        child.stdin.flush()
    except BrokenPipeError:  # it has already ended and reported why
        pass
    while child.poll() is None:
        if state.done != seen:  # runs still arrive, though slowly, as on a busy machine
            seen, deadline = state.done, min(time.monotonic() + wait_s, began + most_s)
        if time.monotonic() >= deadline:
            state.gave_up = True
            return
        if on_wait is not None:
            on_wait(state)
        time.sleep(LOOK_S)
    if child.returncode != 0:
        state.gave_up = True
        state.trouble = (
            state.trouble or f"the process that sends ended with exit code {child.returncode}"
        )
