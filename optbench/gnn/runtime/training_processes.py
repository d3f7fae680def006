"""Starting the processes of a training, and starting them again when one has died.

Every process is a new interpreter that runs this package, neither forked nor ``spawn``-ed. A fork
of a process in which torch has started threads may deadlock. ``spawn`` runs the main module of
whoever calls it again: in a script without a main guard the children end at once with a
RuntimeError, in one from standard input with a FileNotFoundError, and a parent that waits for
their answers in a queue of ``multiprocessing`` waits for ever (tried: both children are zombies
and the parent sleeps in ``pipe_read``, with GLOO_SOCKET_IFNAME as without; with a main guard
``spawn`` runs, with either). The start method alone was the cause. Here the parent watches for
exits instead.

Processes of one machine meet in a file, so that no port is taken by another meanwhile, and talk
over the loopback device, so that the address of the host's name does not matter.

When a process dies the others are ended, and all start again from the last checkpoint.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NoReturn

from optbench.errors import OptbenchError
from optbench.gnn.runtime.process_ranks import MEETING, ProcessRanks
from optbench.gnn.runtime.training_job import SETTINGS, TrainingJob, read_job
from optbench.rendering import resolve

# The room of users' models stands above this one.
WORKER = "optbench.gnn.own_model.own_model_worker:worker_of"
MODULE = "optbench.gnn.runtime"
# A user's module is trained by a room above this one.
WORKER = "optbench.gnn.own_model.own_model_worker:worker_of"
MISTAKE = "mistake.json"
# A process that found a mistake exits so; starting again would find it again.
MISTAKEN = 3
POLL_S = 0.02
LAST_WORDS = 2000


class TrainingError(OptbenchError):
    """A training that could not be finished."""


def start_processes(folders: Sequence[Path]) -> int:
    """Train jobs one after the other on this machine; return how often processes started again."""
    job, _ = read_job(folders[0])
    for attempt in range(job.most_restarts + 1):
        died = _attempt(folders, job, attempt)
        if died is None:
            return attempt
    raise TrainingError(
        f"{folders[0]}: a process died in each of {job.most_restarts + 1} attempts; the last one "
        f"wrote: {died}"
    )


def start_everywhere(folders: Sequence[Path]) -> int:
    """Start this machine's processes, by ``torchrun`` where there are more machines."""
    if machines() == 1:
        try:
            start_processes(folders)
        except OptbenchError as error:
            print(error, file=sys.stderr)
            return 1
        return 0
    return subprocess.run(_torchrun(folders), check=False).returncode


def train_everywhere(folder: Path) -> None:
    """The same, with an exception where the training fails; what torchrun writes is kept."""
    if machines() == 1:
        start_processes([folder])
        return
    environment = {**os.environ, **_paths(), "OMP_NUM_THREADS": "1"}
    with (folder / "log-0.txt").open("ab") as log:
        command = _torchrun([folder.resolve()])
        code = subprocess.run(
            command, env=environment, stdout=log, stderr=log, check=False
        ).returncode
    if code:
        mistaken = (folder / MISTAKE).is_file()
        words = _mistake(folder) if mistaken else f"torchrun: exit {code}: {_last_words(folder, 0)}"
        raise TrainingError(words)


def machines() -> int:
    """The number of machines that take part, as ``torchrun`` reads it."""
    return int(os.environ.get("PET_NNODES", "1"))


def _torchrun(folders: Sequence[Path]) -> list[str]:
    job, _ = read_job(folders[0])
    here = os.environ.get("PET_NPROC_PER_NODE", str(-(-job.num_devices // machines())))
    own = [f"--nproc-per-node={here}", f"--max-restarts={job.most_restarts}"]
    run = [sys.executable, "-m", "torch.distributed.run", *own, "-m", MODULE]
    return [*run, *map(str, folders)]


def run_process(folders: Sequence[Path]) -> NoReturn:
    """Be one of the processes, as the environment says."""
    ranks = ProcessRanks.of_environment()
    _pin(folders[0], ranks)
    import torch

    torch.set_num_threads(1)
    folder = folders[0]
    try:
        job, _ = read_job(folder)
        ranks.join(job.timeout_s)
        for folder in folders:
            resolve(WORKER)(folder, ranks).run()
        ranks.leave()
    except OptbenchError as error:
        (folders[0] / MISTAKE).write_text(json.dumps({"error": f"{folder}: {error}"}))
        print(error, file=sys.stderr, flush=True)
        os._exit(MISTAKEN)
    # Threads of gloo that still run when the interpreter takes itself down abort the process.
    os._exit(0)


def _pin(folder: Path, ranks: ProcessRanks) -> None:
    """Keep this process, and the threads that it will start, on its core."""
    cores = json.loads((folder / SETTINGS).read_text())["cores"]
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores[ranks.rank]})


def _attempt(folders: Sequence[Path], job: TrainingJob, attempt: int) -> str | None:
    """Run all processes; return the last words of one that died, None if all are done."""
    meeting = (folders[0] / f"meeting-{os.getpid()}-{attempt}").resolve()
    running = []
    try:
        for rank in range(job.num_devices):
            log = (folders[0] / f"log-{rank}.txt").open("ab")
            with log:
                running.append(_started(folders, rank, job.num_devices, attempt, meeting, log))
        while True:
            codes = [each.poll() for each in running]
            for rank, code in enumerate(codes):
                if code == MISTAKEN:
                    raise TrainingError(_mistake(folders[0]))
                if code:
                    return f"process {rank} (exit {code}): {_last_words(folders[0], rank)}"
            if all(code == 0 for code in codes):
                return None
            time.sleep(POLL_S)
    finally:
        for each in running:
            if each.poll() is None:
                each.kill()
            each.wait()
        with suppress(FileNotFoundError):
            meeting.unlink()


def _started(
    folders: Sequence[Path], rank: int, size: int, attempt: int, meeting: Path, log: BinaryIO
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", MODULE, *(str(each.resolve()) for each in folders)]
    environment = {
        **os.environ,
        **_paths(),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "TORCHELASTIC_RESTART_COUNT": str(attempt),
        "OMP_NUM_THREADS": "1",
        MEETING: f"file://{meeting}",
    }
    loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    if loopback:
        environment["GLOO_SOCKET_IFNAME"] = loopback[0]
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )


def _paths() -> Mapping[str, str]:
    """What this process can import, the new one can."""
    return {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}


def _mistake(folder: Path) -> str:
    words: str = json.loads((folder / MISTAKE).read_text())["error"]
    return words


def _last_words(folder: Path, rank: int) -> str:
    return (folder / f"log-{rank}.txt").read_text(errors="replace")[-LAST_WORDS:].strip()
