"""Commands of optbench run and traced for `rooms.py`: modules, start-up times, and four walks.

A *walk* is the order in which calls enter files for the first time. A call into another room
*enters* that room. Two readings say when a room is entered twice:

* By the stack of calls: on the way from `main` to a called function, a room is entered again if
  calls had left it for another room. A lower room that calls back into a higher one does this; a
  room that calls two others in turn does not. A thread continues the stack of the call that
  started it; a new process begins a stack.
* By time, which is stricter: a room is entered again by each call that comes from a room in a
  higher layer after the room had been entered before; a return, a call within a room and a call
  from below (a callback, a policy that the kernel asks) do not count.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._source_figures import Layers, room_of

ROOT = Path(__file__).resolve().parents[1]
SOLVE = ("solve", "gpu_dag:tasks=12", "-s", "heft")
STUDY = """\
question = "One cell, to follow its calls."
problems = ["gpu_dag:tasks=12"]
solvers = ["heft"]
seeds = 1
time_limit = "2s"
"""
LOG = """\
JobID|Eligible|Start|End|Elapsed|State|AllocTRES|NodeList
1|2024-02-28T23:00:00|2024-02-28T23:00:10|2024-02-29T00:30:10|01:30:00|COMPLETED|gres/gpu:a100=4|gpu01
2|2024-02-28T23:10:05|2024-02-28T23:10:05|2024-02-28T23:40:05|00:30:00|FAILED|gres/gpu:a100=1|gpu02
3|2024-02-28T23:10:05|2024-02-28T23:10:05|2024-02-28T23:55:05|00:45:00|COMPLETED|gres/gpu:a100=1|gpu02
4|2024-02-28T23:20:00|2024-02-29T00:30:10|2024-02-29T02:33:14|02:03:04|TIMEOUT|gres/gpu:a100=8|gpu[01-02]
"""
WALKS = {
    "solve": (SOLVE,),
    "cell": (("run", "study.toml", "--no-track", "-q"),),
    "week": (("simulate", "geo_dc:days=0.2", "--policy", "default_policy"),),
    "audit": (("audit", "log.sacct", "--profile", "a100=A100-PCIe", "-q"),),
}
# Why a room may be entered again on a stack of calls, by the calling room and the room.
PROGRESS = "live progress: who waits for a result is shown how far it is before there is a result"
REASONS = {
    ("plugins", "cli"): PROGRESS,
    ("run", "cli"): PROGRESS,
    ("audit", "cli"): PROGRESS,
    ("compiling", "execute"): PROGRESS,
    ("cli", "run"): "within live progress: `run` keeps the state of the study that the line shows, "
    "and the filter of cells",
    (
        "execute",
        "run",
    ): "jobs are drawn from an iterator as processes become free, so that the input "
    "of a thousand cells is not held at once; what was compiled is passed on as it happens",
    (
        "evaluate",
        "report",
    ): "which value of a row is averaged is given as a function, like a key of `sorted`",
    ("report", "evaluate"): "within such a function, an attribute of a row is computed",
}
PLAIN = "import sys; from {module} import {function}; sys.exit({function}())"
# Keeps the names of the modules of optbench that are loaded when a command ends.
KEEP_MODULES = """
import json, os, sys
from {module} import {function}
try:
    sys.exit({function}())
finally:
    names = sorted(name for name in sys.modules if name.startswith("optbench."))
    open(os.environ["OPTBENCH_MODULES"], "w").write(json.dumps(names))
"""


def start(code: str = PLAIN) -> list[str]:
    """The words that start the command line as its entry in pyproject.toml says."""
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["optbench"]
    module, _, function = entry.partition(":")
    return [sys.executable, "-c", code.format(module=module, function=function)]


def environment(**more: str) -> dict[str, str]:
    """This checkout, one thread, and nothing that an outer workspace says."""
    kept = {k: v for k, v in os.environ.items() if k != "OPTBENCH_WORKSPACE"}
    return {**kept, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}


def ran(words: list[str], folder: Path, environ: dict[str, str]) -> None:
    """Run a command in a folder; it must end without an error."""
    done = subprocess.run(words, cwd=folder, env=environ, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{words[3:]}: exit code {done.returncode}\n{done.stderr[-2000:]}")


def modules_loaded(verb: tuple[str, ...]) -> list[str]:
    """Modules of optbench in the process of a command at its exit, compiled code being there."""
    with tempfile.TemporaryDirectory() as name:
        kept = Path(name) / "modules.json"
        environ = environment(OPTBENCH_MODULES=str(kept))
        for _ in range(2):  # the first run fills the caches
            ran([*start(KEEP_MODULES), *verb], Path(name), environ)
        loaded: list[str] = json.loads(kept.read_text())
        return loaded


def startup_s(verb: list[str], repeats: int = 3) -> dict[str, float]:
    """Seconds of a command from start to end, and of the processor: the least of some runs."""
    walls, cpus = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        null, words = subprocess.DEVNULL, [*start(), *verb]
        child = subprocess.Popen(words, cwd=ROOT, env=environment(), stdout=null, stderr=null)
        _, child.returncode, usage = os.wait4(child.pid, 0)
        walls.append(time.perf_counter() - began)
        cpus.append(usage.ru_utime + usage.ru_stime)
        if child.returncode:
            raise SystemExit(f"{verb}: wait status {child.returncode}")
    return {"wall_s": round(min(walls), 3), "cpu_s": round(min(cpus), 3)}


def verbs() -> list[str]:
    """All verbs of the command line, read from its help."""
    words = [*start(), "--help"]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
    listed = done.stdout.partition("\nverbs:\n")[2].partition("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines()]


@dataclass(frozen=True)
class TracedCall:
    """The first call from a file to another one; no caller at the start of a process or thread."""

    pid: int
    caller: str
    calling: str
    callee: str
    called: str
    stack: str = ""  # rooms from the start of the stack; empty unless one is entered again on it

    def words(self) -> str:
        if not self.caller:
            return f"{self.callee} ({self.called}), at the start of a process or thread"
        return f"{self.caller} ({self.calling}) → {self.callee} ({self.called})"


def traced(name: str) -> list[TracedCall]:
    """The calls of a walk between files, in the order of time, over all processes.

    Each pair of files occurs once; so does each pair of a file and a room that its call enters
    again on the stack.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder, hook, calls = (Path(scratch) / each for each in ("work", "hook", "calls"))
        for each in (folder, hook, calls):
            each.mkdir()
        shutil.copy(ROOT / "benchmarks" / "_call_tracer.py", hook / "sitecustomize.py")
        (folder / "log.sacct").write_text(LOG)
        (folder / "study.toml").write_text(STUDY)
        (folder / "optbench.toml").write_text("")
        path = f"{hook}{os.pathsep}{ROOT}"
        tracing = {"OPTBENCH_TRACE_FOLDER": str(calls), "OPTBENCH_TRACE_ROOT": str(ROOT)}
        for verb in WALKS[name]:
            ran([*start(), *verb], folder, {**environment(), **tracing, "PYTHONPATH": path})
        rows = []
        for file in calls.glob("*.calls"):
            text = file.read_bytes().rstrip(b"\0").decode()
            rows += [line.split("\t") for line in text.splitlines()]
    rows.sort(key=lambda row: int(row[0]))
    found: dict[tuple[str, str, bool], TracedCall] = {}
    for _, pid, caller, calling, callee, called, stack in rows:
        key = (caller, room_of(callee) if stack else callee, bool(stack))
        found.setdefault(key, TracedCall(int(pid), caller, calling, callee, called, stack))
    return list(found.values())


class Walk:
    """The files that calls enter, and the rooms that are entered again."""

    def __init__(self, name: str, calls: list[TracedCall], layers: Layers) -> None:
        self.name, self.calls = name, [call for call in calls if not call.stack]
        self.again_on_stack = [call for call in calls if call.stack]
        self.height = layers.height
        self.firsts: list[TracedCall] = []
        self.again: list[TracedCall] = []  # among the first calls into a file
        self.again_ever: list[TracedCall] = []  # among all pairs of files
        files: set[str] = set()
        rooms: set[str] = set()
        for call in self.calls:
            again = room_of(call.callee) in rooms and self.from_above(call)
            self.again_ever += [call] if again else []
            if call.callee not in files:
                self.firsts.append(call)
                self.again += [call] if again else []
            files.add(call.callee)
            rooms.add(room_of(call.callee))

    def from_above(self, call: TracedCall) -> bool:
        """Whether a call comes from another room that stands in a higher layer."""
        if not call.caller:
            return True
        differs = room_of(call.caller) != room_of(call.callee)
        above: bool = self.height(call.caller) > self.height(call.callee)
        return differs and above

    def figures(self) -> dict[str, object]:
        return {
            "files": len(self.firsts),
            "rooms": len({room_of(call.callee) for call in self.firsts}),
            "rooms entered again": by_room(self.again),
            "rooms entered again, every pair of files": by_room(self.again_ever),
            "rooms entered again on the stack": by_room(self.again_on_stack),
            "entered again on the stack by": [
                f"{call.words()}: {reason_for(call)}" for call in self.again_on_stack
            ],
            "callers": dict(Counter(_rooms(call) for call in self.again).most_common()),
            "entered again by": [call.words() for call in self.again],
        }

    def tree(self) -> list[Visit]:
        """The visits of rooms, each under the visit from which a call entered the room first."""
        roots: list[Visit] = []
        visit_of: dict[str, Visit] = {}
        for call in self.firsts:
            room = room_of(call.callee)
            above = visit_of.get(call.caller)
            if above is None or above.room != room:
                beside = roots if above is None else above.entered
                found = next((visit for visit in beside if visit.room == room), None)
                above = found or Visit(room, call)
                beside += [] if found else [above]
            above.files.append(call.callee)
            visit_of[call.callee] = above
        return roots

    def text(self) -> str:
        """The tree of visits, and the entries again by both readings."""
        lines = [f"# {self.name}: {'; '.join(' '.join(verb) for verb in WALKS[self.name])}"]
        for depth, visit in visits(self.tree()):
            lines.append("    " * depth + f"{visit.room}, by {visit.entry.words()}")
            lines += ["    " * depth + f"  - {file}" for file in visit.files]
        lines.append("# entered again on the stack of calls")
        lines += [f"    {call.words()}: {call.stack}" for call in self.again_on_stack]
        lines.append("# entered again by time")
        lines += [f"    {call.words()}" for call in self.again]
        stack, by_time = by_room(self.again_on_stack), by_room(self.again)
        summary = f"{len(self.firsts)} files; rooms entered again, by the stack: {stack or 'none'}"
        return "\n".join([*lines, f"{summary}; by time: {by_time or 'none'}"])


@dataclass(frozen=True)
class Visit:
    """A room on a path of calls: the call that entered it first, its files in the order of their
    first calls, and the rooms that calls enter from there."""

    room: str
    entry: TracedCall
    files: list[str] = field(default_factory=list)
    entered: list[Visit] = field(default_factory=list)


def visits(tree: list[Visit], depth: int = 0) -> Iterator[tuple[int, Visit]]:
    """All visits with their depths, each before those below it."""
    for visit in tree:
        yield depth, visit
        yield from visits(visit.entered, depth + 1)


def _rooms(call: TracedCall) -> str:
    return f"{room_of(call.caller) if call.caller else 'start'} → {room_of(call.callee)}"


def reason_for(call: TracedCall) -> str:
    """Why a call may enter a room again on its stack."""
    return REASONS.get((room_of(call.caller), room_of(call.callee)), "no reason is known; mend it")


def by_room(calls: list[TracedCall]) -> dict[str, int]:
    """How often each room is entered again, the worst first."""
    return dict(Counter(room_of(call.callee) for call in calls).most_common())
