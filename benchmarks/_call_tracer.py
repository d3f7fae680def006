"""Record which files of this repository call which others, in every process that a command starts.

`rooms.py` copies this file as `sitecustomize.py` into a folder on PYTHONPATH, so that each Python
process runs it before anything else. It must import nothing of optbench and work without a write
permission: cells are confined after they have been forked, so each process opens its file at its
start (or just after the fork) and writes to it through a shared memory map.

One line per first call from a file to another: nanoseconds, process, calling file and function,
called file and function, separated by tabs. A seventh word is given where the call enters a room
that the stack of calls had left for another one: the rooms of the stack, from its start. Such a
line is written once for each calling file and room. What runs while a module is imported does not
count. A thread continues the stack of the call that started it.
Kernels that numba has compiled are invisible: a call into one ends in the Python file before it.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from types import FrameType

FOLDER, ROOT = "OPTBENCH_TRACE_FOLDER", "OPTBENCH_TRACE_ROOT"
TOPS = ("optbench", "problems", "solvers")
PLUGINS = TOPS[1:]
MAX_BYTES = 1 << 21
# Attribute of a thread: the rooms of the stack that started it.
STARTED_BY = "_optbench_rooms"
# Flag of code objects that are functions; the bodies of modules and classes lack it (CO_OPTIMIZED).
IS_FUNCTION = 1


class CallTracer:
    """A profile function, with the calls seen so far."""

    def __init__(self, folder: str, root: str) -> None:
        self.folder, self.root = folder, os.path.join(root, "")
        self.paths: dict[str, str] = {}
        self.seen: set[tuple[str, str]] = set()
        self.entered_again: set[tuple[str, str]] = set()
        self.importing = threading.local()
        self.open_file()

    def open_file(self) -> None:
        """A file of this process; also called in each child after a fork."""
        self.pid = os.getpid()
        name = f"{time.monotonic_ns()}-{self.pid}.calls"
        file = os.open(os.path.join(self.folder, name), os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(file, MAX_BYTES)
        self.map = mmap.mmap(file, MAX_BYTES)
        os.close(file)

    def path(self, filename: str) -> str:
        """The path of our file relative to the root, or nothing for a file of somebody else."""
        if filename not in self.paths:
            inside = filename.startswith(self.root)
            relative = filename[len(self.root) :] if inside else ""
            self.paths[filename] = relative if relative.split(os.sep)[0] in TOPS else ""
        return self.paths[filename]

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        path = self.path(code.co_filename)
        if not path:
            return
        depth = getattr(self.importing, "depth", 0)
        if not code.co_flags & IS_FUNCTION:
            self.importing.depth = depth + (1 if event == "call" else -1)
        elif event == "call" and not depth:
            self.record(frame, path)

    def record(self, frame: FrameType, path: str) -> None:
        """Keep the call if its caller, the nearest frame of ours, lies in another file."""
        caller, back = "", frame.f_back
        while back is not None and not (caller := self.path(back.f_code.co_filename)):
            back = back.f_back
        if caller == path:
            return
        if caller and room_of(caller) != room_of(path):
            self.record_entry(frame, back, caller, path)
        if (caller, path) not in self.seen:
            self.seen.add((caller, path))
            self.write(frame, back, caller, path)

    def record_entry(
        self, frame: FrameType, back: FrameType | None, caller: str, path: str
    ) -> None:
        """Keep the call if its room stands in the stack already, below the caller's room."""
        room = room_of(path)
        if (caller, room) in self.entered_again:
            return
        rooms = self.rooms_from(back)
        if room in rooms:
            self.entered_again.add((caller, room))
            self.write(frame, back, caller, path, ">".join([*reversed(rooms), room]))

    def rooms_from(self, at: FrameType | None) -> list[str]:
        """The rooms of a stack, its end first, with those of the stack that started the thread."""
        files = []
        while at is not None:
            files.append(self.path(at.f_code.co_filename))
            at = at.f_back
        begun = vars(threading.current_thread()).get(STARTED_BY, ())
        rooms = [*(room_of(file) for file in files if file), *begun]
        return [room for k, room in enumerate(rooms) if k == 0 or room != rooms[k - 1]]

    def write(
        self, frame: FrameType, back: FrameType | None, caller: str, path: str, stack: str = ""
    ) -> None:
        calling = back.f_code.co_qualname if back is not None else ""
        called = frame.f_code.co_qualname
        words = (time.monotonic_ns(), self.pid, caller, calling, path, called, stack)
        line = ("\t".join(map(str, words)) + "\n").encode()
        if self.map.tell() + len(line) > MAX_BYTES:
            raise RuntimeError(f"more than {MAX_BYTES} bytes of calls in one process")
        self.map.write(line)


def room_of(path: str) -> str:
    """The room of a file, as in `_source_figures`, which cannot be imported here."""
    parts = path.removesuffix(".py").split("/")
    return parts[0] if parts[0] in PLUGINS or parts[1] == "__init__" else parts[1]


def install(folder: str, root: str) -> None:
    """Trace this process, its threads and its forks."""
    tracer = CallTracer(folder, root)
    start = threading.Thread.start

    def start_with_rooms(thread: threading.Thread) -> None:
        setattr(thread, STARTED_BY, tracer.rooms_from(sys._getframe(1)))
        start(thread)

    threading.Thread.start = start_with_rooms  # type: ignore[assignment,method-assign]
    os.register_at_fork(after_in_child=tracer.open_file)
    threading.setprofile(tracer)
    sys.setprofile(tracer)


if FOLDER in os.environ:
    install(os.environ[FOLDER], os.environ[ROOT])
