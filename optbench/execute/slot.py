"""A slot runs one job at a time, each in a child, and waits until no process of it is left."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

from optbench.execute.cell_process import run_cell_process
from optbench.execute.limit_watch import Baseline, LimitWatch, ProcessLimits
from optbench.execute.message_channel import MessageChannel
from optbench.hardware.cpu_run_meter import CpuRunMeter
from optbench.sandbox import process_tree
from optbench.sandbox.confine import enforced_protections, raise_priority, thread_limit
from optbench.sandbox.job_folder import remove_folder
from optbench.sandbox.system_calls import IS_LINUX, PR_SET_CHILD_SUBREAPER, prctl

OUTPUT = "output.txt"
# Seconds during which starting a process is tried again when another cell has used up the machine's
# processes, and seconds between two attempts.
START_S, AGAIN_S = 3.0, 0.1


class Slot:
    """A single-threaded slot; it ends with its cell when the runner or the zygote has ended."""

    def __init__(self, channel: MessageChannel, zygote: int) -> None:
        self.channel, self.zygote = channel, zygote
        self.user_threads, self.meter = thread_limit(), CpuRunMeter()
        raise_priority()
        if IS_LINUX:
            prctl(PR_SET_CHILD_SUBREAPER, 1)

    def serve(self) -> None:
        """Run jobs until the runner closes the channel."""
        while (messages := self.channel.receive()) is not None:
            stopped = any("stop" in message for message in messages)
            for job in (message["job"] for message in messages if "job" in message):
                if not (self.channel.send({"stopped": job["key"]}) if stopped else self._run(job)):
                    return

    def _run(self, job: dict[str, Any]) -> bool:
        """Run a job; return whether the runner is still there."""
        folder = Path(job["folder"])
        began = self._begin(job, folder)
        if isinstance(began, str):
            return self.channel.send({"key": job["key"], "not_started": began})
        watch, output = began
        try:
            wanted = True
            while wanted and not watch.poll():
                for _ in watch.wait():
                    wanted = False  # any message from the runner during a job means stop
                self.meter.tick(watch.seen.cpu_s)
                wanted = wanted and os.getppid() == self.zygote
            outcome = watch.finish()
            watch.close()
        finally:
            os.close(output)
        if not wanted:
            messages = self.channel.receive()
            if messages is None or os.getppid() != self.zygote:
                return False
            return self.channel.send({"stopped": job["key"]})
        used, allowed = outcome["peak_memory_mb"], job["limits"]["memory_mb"]
        return self.channel.send(
            {
                "key": job["key"],
                **outcome,
                "energy": self.meter.so_far(outcome["cpu_s"]).to_dict(),
                "span_s": [watch.began, watch.began + outcome["total_s"]],
                "memory": f"{used:.0f} MB were used, {allowed:.0f} MB are allowed",
                "sandbox": enforced_protections(job["landlock"], job["placement"]["network"]),
            }
        )

    def _begin(self, job: dict[str, Any], folder: Path) -> tuple[LimitWatch, int] | str:
        """Return the cell's watch and output file, or why the machine cannot start a process."""
        deadline = time.monotonic() + START_S
        while True:
            output = None
            try:
                output = _fresh(folder)
                return self._start(job, folder, output), output
            except OSError as error:
                if output is not None:
                    os.close(output)
                if time.monotonic() > deadline:
                    return str(error)
                time.sleep(AGAIN_S)

    def _start(self, job: dict[str, Any], folder: Path, output: int) -> LimitWatch:
        me = os.getpid()
        self.meter.begin(job["placement"]["cores"])
        baseline = Baseline(process_tree.own_memory_mb(me), process_tree.rss_mb(me))
        child = os.fork()
        if child == 0:
            run_cell_process({**job, "user_threads": self.user_threads}, output, me)
        return LimitWatch(
            child, folder, output, ProcessLimits(**job["limits"]), baseline, [self.channel.fileno()]
        )


def _fresh(folder: Path) -> int:
    """Create an empty folder for a job and the file for its output in it."""
    remove_folder(folder)
    folder.mkdir(parents=True)
    return os.open(
        folder / OUTPUT, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
    )


def run_slot(end: socket.socket, zygote: int) -> None:
    """Run a slot in the zygote's child; never returns."""
    try:
        Slot(MessageChannel(end), zygote).serve()
    finally:
        process_tree.kill_tree()
        os._exit(0)
