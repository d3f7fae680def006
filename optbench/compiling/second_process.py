"""A second process that compiles kernels: the first one takes them from the front of a list, the
second one is given them from its end, until none is left.

The second process writes its code to the cache, from which the first one loads it afterwards.
Whatever the second process does not compile, for whatever reason, the first one compiles.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from optbench.compiling.compile_meter import announcing, no_announcement

# One kernel alone, or one core, leaves nothing for a second process.
LEAST_KERNELS, LEAST_CORES = 2, 2
COMMAND = """
from optbench.compiling.kernel_table import KERNELS
from optbench.compiling.second_process import serve
serve(lambda name: KERNELS[name].compile_missing())
"""


def share_of_this_process(names: Sequence[str]) -> Iterator[str]:
    """Yield the kernels that this process should compile, while a second one compiles the
    others.
    """
    if len(names) < LEAST_KERNELS or (os.cpu_count() or 1) < LEAST_CORES:
        yield from names
        return
    waiting = deque(names)
    with _start() as process:
        feeder = threading.Thread(target=_feed, args=(process, waiting), daemon=True)
        feeder.start()
        try:
            while waiting:
                yield waiting.popleft()
            feeder.join()
        finally:
            process.kill()


def _start() -> subprocess.Popen[bytes]:
    # The import path is passed on: a checkout may have been added to it.
    path = os.pathsep.join(each for each in sys.path if each)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env=os.environ | {"PYTHONPATH": path},
    )


def _feed(process: subprocess.Popen[bytes], waiting: deque[str]) -> None:
    """Give the second process one kernel after the other; stop if it ends."""
    assert process.stdin is not None and process.stdout is not None
    while waiting:
        try:
            process.stdin.write(waiting.pop().encode() + b"\n")
        except (BrokenPipeError, IndexError):  # it has ended; the other thread took the last one
            return
        if not process.stdout.readline():
            return


def serve(compile_one: Callable[[str], None]) -> None:
    """Compile the kernels named on standard input; end at once when the first process ends."""
    names: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_compile_all, args=(names, compile_one), daemon=True).start()
    for line in sys.stdin:
        names.put(line.strip())
    os._exit(0)


def _compile_all(names: queue.SimpleQueue[str], compile_one: Callable[[str], None]) -> None:
    try:
        with announcing(no_announcement):
            while True:
                compile_one(names.get())
                os.write(1, b"\n")
    finally:
        os._exit(1)
