"""Kill ``gpu apply``, its watchdog or both at a random moment, and see that clocks are restored.

A trial is a machine of its own with two devices, whose clock calls take CALL_S each, and a real
``optbench gpu apply --execute`` of a schedule that changes clocks twelve times. Nothing in the
processes is changed: the moment is found by looking at the machine's memory-mapped file.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psutil

from optbench.cli.terminal import exits
from optbench.hardware.clock_control.device_lock import is_held
from tests.hardware.clock_control.planned_files import write_plan
from tests.hardware.gpu_machine import GpuMachine

DEVICES, CALL_S, PIECE_S = 2, 0.03, 0.15
# Six segments on each device, back to back.
LENGTHS_S = [PIECE_S] * 6 * DEVICES
# The plan and its last resets take about this long.
PLAN_S = 6 * PIECE_S + 3 * DEVICES * CALL_S
PATIENCE_S, GLANCE_S = 60.0, 0.0005
LOCK, RESET = 1, 2
# When to kill. A first lock has taken effect and its call has not returned. A first reset, after a
# SIGTERM in the middle of the plan, has not taken effect. Restoring is done by apply, or by the
# watchdog, where apply died before.
MOMENTS = (
    "any time",
    "before the first lock",
    "in the first lock call",
    "in a lock call",
    "between calls",
    "in the first reset call",
    "restoring",
)


@dataclass(frozen=True)
class KillTrial:
    """What was killed when, and how the clocks came back."""

    victim: str
    moment: str
    seed: int
    killed_after_s: float
    lock_calls_before: int
    in_call: str
    locked_at_kill: bool
    journals_at_kill: int
    restored_by: str
    restored_after_s: float
    restored: bool
    journals_left: int


class RunningApply:
    """A ``gpu apply --execute`` on a machine, and what can be seen of it."""

    def __init__(self, machine: GpuMachine) -> None:
        for k in range(DEVICES):
            machine.set(k, control_ns=int(CALL_S * 1e9))
        self.machine, self.state = machine, machine.folder / "state"
        self.known_watchdogs: set[int] = set()
        write_plan(machine.folder, DEVICES, LENGTHS_S)
        words = ["gpu", "apply", "schedule.json", "--execute"]
        self.began = time.monotonic()
        self.process = machine.start(words, OPTBENCH_GPU_STATE=str(self.state))

    @property
    def pid(self) -> int:
        return self.process.pid

    def watchdogs(self) -> list[int]:
        """Watchdogs of this machine that live, whoever their parent is now."""
        out = []
        for each in psutil.process_iter(["cmdline"]):
            words = each.info["cmdline"] or []
            if any("watch(told)" in word for word in words) and str(self.state) in words[-1]:
                out.append(each.pid)
        self.known_watchdogs |= set(out)
        return out

    def in_call(self, kind: int, pid: int | None = None) -> bool:
        """Whether a process is within a call that locks or resets."""
        for k in range(DEVICES):
            found = self.machine.device(k)
            if found.in_call == kind and found.in_call_pid == (pid or self.pid):
                return True
        return False

    def num_locks(self) -> int:
        return sum(call.kind == "lock" for call in self.machine.calls())

    def locked(self) -> bool:
        return any(self.machine.locked(k) is not None for k in range(DEVICES))

    def journals(self) -> int:
        return len(list(self.state.glob("*.journal")))

    def held(self) -> bool:
        return any(is_held(self.state, self.machine.uuid(k)) for k in range(DEVICES))

    def restore(self) -> subprocess.Popen[str]:
        """Start ``optbench gpu restore``."""
        return self.machine.start(["gpu", "restore"], OPTBENCH_GPU_STATE=str(self.state))

    def restored_by(self) -> str:
        """Whose call was the last one that reset a clock, by the machine's log."""
        calls = self.machine.calls()
        if not any(call.kind == "lock" for call in calls):
            return "nobody, no lock having taken effect"
        resets = [call for call in calls if call.kind == "reset"]
        if not resets:
            return "nobody"
        last = resets[-1].pid
        known = {self.pid: "apply", **dict.fromkeys(self.known_watchdogs, "the watchdog")}
        return known.get(last, "gpu restore")


def await_that(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> bool:
    """Wait until something holds; False where the process ended before."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if process is not None and process.poll() is not None:
            return condition()
        if time.monotonic() > until:
            raise TimeoutError(f"waited {PATIENCE_S:g} s in vain")
        time.sleep(GLANCE_S)
    return True


def undisturbed_s(machine: GpuMachine) -> float:
    """How long an apply takes that nobody kills, from its start to its end."""
    apply = RunningApply(machine)
    apply.process.communicate(timeout=PATIENCE_S)
    return time.monotonic() - apply.began


def run_trial(
    machine: GpuMachine, victim: str, moment: str, seed: int, whole_s: float = 1.5
) -> KillTrial:
    """One trial; the caller looks whether it says restored. ``whole_s`` is about the time that an
    undisturbed apply takes on the machine of the tests.
    """
    rng = random.Random(f"{victim}, {moment}, {seed}")
    apply = RunningApply(machine)
    if victim != "apply":
        # Before the watchdog lives, there is none to kill.
        await_that(lambda: bool(apply.watchdogs()), apply.process)
    if moment == "any time":
        # A watchdog is there only from about the begin of the plan on.
        time.sleep(rng.uniform(0.0, whole_s if victim == "apply" else PLAN_S))
    else:
        _await_moment(apply, moment, rng)
    in_call = "lock" if apply.in_call(LOCK) else "reset" if apply.in_call(RESET) else "none"
    seen = (apply.num_locks(), in_call, apply.locked(), apply.journals())
    killed = time.monotonic()
    code = VICTIMS[victim](apply, moment, rng)
    restored_s = time.monotonic() - killed
    restored = not apply.locked() and code in (exits.DONE, exits.INTERRUPTED)
    return KillTrial(
        victim,
        moment,
        seed,
        killed - apply.began,
        *seen,
        apply.restored_by(),
        restored_s,
        restored,
        apply.journals(),
    )


def _await_moment(apply: RunningApply, moment: str, rng: random.Random) -> None:
    """Let the moment come; where the process ends before, that is the moment."""
    if moment == "before the first lock":
        # Start, imports, verification: about this long; the lock may come first on a fast machine.
        until = time.monotonic() + rng.uniform(0.0, 0.1 if apply.known_watchdogs else 0.4)
        await_that(lambda: apply.in_call(LOCK) or time.monotonic() > until, apply.process)
    elif moment == "in the first lock call":
        await_that(lambda: apply.num_locks() >= 1, apply.process)
        time.sleep(rng.uniform(0.0, CALL_S / 4))
    elif moment == "in the first reset call":
        _terminate(apply, rng)
        time.sleep(rng.uniform(0.0, CALL_S / 4))
    elif moment == "in a lock call":
        number = rng.randrange(1, 10)
        await_that(lambda: apply.num_locks() >= number, apply.process)
        await_that(lambda: apply.in_call(LOCK), apply.process)
        time.sleep(rng.uniform(0.0, CALL_S))
    elif moment == "between calls":
        number = rng.randrange(1, 10)
        await_that(lambda: apply.num_locks() >= number, apply.process)
        time.sleep(rng.uniform(CALL_S, PIECE_S))
    else:
        if rng.random() < 0.5:
            _terminate(apply, rng)
        await_that(lambda: apply.in_call(RESET), apply.process)
        time.sleep(rng.uniform(0.0, 2 * CALL_S))


def _terminate(apply: RunningApply, rng: random.Random) -> None:
    """Have apply restore in the middle of its plan, and wait until it does."""
    number = rng.randrange(2, 10)
    await_that(lambda: apply.num_locks() >= number, apply.process)
    apply.process.terminate()
    await_that(lambda: apply.in_call(RESET), apply.process)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_apply(apply: RunningApply, moment: str, rng: random.Random) -> int:
    """Kill apply, and wait until nobody holds its devices any more: its watchdog has ended."""
    _kill(apply.pid)
    apply.watchdogs()
    apply.process.communicate()
    await_that(lambda: not apply.held())
    return 0


def kill_watchdog(apply: RunningApply, moment: str, rng: random.Random) -> int:
    """Kill the watchdog; apply goes on to its end, and its exit code tells how that was."""
    for pid in apply.known_watchdogs or apply.watchdogs():
        _kill(pid)
    apply.process.communicate(timeout=PATIENCE_S)
    return apply.process.returncode


def kill_both(apply: RunningApply, moment: str, rng: random.Random) -> int:
    """Kill both, then run ``gpu restore``."""
    _kill_both(apply, moment, rng)
    return apply.restore().wait(PATIENCE_S)


def kill_restore(apply: RunningApply, moment: str, rng: random.Random) -> int:
    """Kill both, then ``gpu restore`` within its call where it makes one, then run it again."""
    _kill_both(apply, moment, rng)
    first = apply.restore()
    await_that(lambda: apply.in_call(RESET, first.pid), first)
    time.sleep(rng.uniform(0.0, 2 * CALL_S))
    _kill(first.pid)
    first.communicate()
    return apply.restore().wait(PATIENCE_S)


def _kill_both(apply: RunningApply, moment: str, rng: random.Random) -> None:
    """Kill both, in either order, with any watchdog that was started meanwhile; in half of the
    restorations apply goes first, and the watchdog dies within a restoration of its own.
    """
    watchdogs = [*apply.known_watchdogs]
    if moment == "restoring" and watchdogs and rng.random() < 0.5:
        _kill(apply.pid)
        await_that(
            lambda: apply.in_call(RESET, watchdogs[0]) or watchdogs[0] not in apply.watchdogs()
        )
        time.sleep(rng.uniform(0.0, CALL_S))
    order = [apply.pid, *watchdogs]
    rng.shuffle(order)
    for pid in order:
        _kill(pid)
    apply.process.communicate()
    # A watchdog that was being started when its parent died.
    quiet = 0
    while quiet < 3:
        rest = apply.watchdogs()
        for pid in rest:
            _kill(pid)
        quiet = 0 if rest else quiet + 1
        time.sleep(0.01)


VICTIMS: dict[str, Callable[[RunningApply, str, random.Random], int]] = {
    "apply": kill_apply,
    "watchdog": kill_watchdog,
    "both": kill_both,
    "both, then restore": kill_restore,
}
