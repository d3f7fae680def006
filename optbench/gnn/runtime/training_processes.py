"""Starting the processes of a training, and starting them again when one has died.

Every process is a new interpreter that runs this package, neither forked nor ``spawn``-ed. A fork
of a process in which torch has started threads may deadlock. ``spawn`` runs the main module of
whoever calls it again: with a main guard it ran with and without GLOO_SOCKET_IFNAME; without one
the children end at once, and a parent that waits for their answers in a queue waits for ever. Here
the parent watches for exits instead.

Processes of one machine meet in a file, so that no port is taken by another meanwhile, and talk
over the loopback device, so that the address of the host's name does not matter.

When a process dies the others are ended, and all start again from the last checkpoint. When the
command dies they end too (``held_folder``).

A process imports what PYTHONPATH and the installation name, and after that whatever else its
command can: the folder in which the command runs is not searched first, so that a ``types.py``
there hides no module of the library.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

from optbench.errors import OptbenchError, ParameterError
from optbench.files import write_whole
from optbench.gnn.runtime.held_folder import COMMAND, end_with_the_command, held
from optbench.gnn.runtime.process_ranks import MEETING, ProcessRanks
from optbench.gnn.runtime.training_job import SETTINGS, read_job
from optbench.rendering import resolve

MODULE = "optbench.gnn.runtime"
# A user's module is trained by a room above this one.
WORKER = "optbench.gnn.own_model.own_model_worker:worker_of"
MISTAKE = "mistake.json"
# A process that found a mistake exits so; starting again would find it again.
MISTAKEN = 3
# The number of machines, as ``torchrun`` reads it.
MACHINES = "PET_NNODES"
# Folders that a process searches after all others.
MORE_PATHS = "OPTBENCH_MORE_PATHS"
POLL_S = 0.02
LAST_WORDS = 2000


class TrainingError(OptbenchError):
    """A training that could not be finished."""


@dataclass(frozen=True)
class Attempt:
    """One start of all processes: they inherit the lock on the folder, if there is one."""

    folders: Sequence[Path]
    size: int
    number: int
    lock: int | None

    @property
    def first(self) -> Path:
        return self.folders[0]

    @property
    def meeting(self) -> Path:
        return (self.first / f"meeting-{os.getpid()}-{self.number}").resolve()


def start_processes(folders: Sequence[Path], lock: int | None = None) -> int:
    """Train jobs one after the other on this machine; return how often processes started again.

    ``lock`` is what ``held`` yields, where others could use the first folder too.
    """
    job, _ = read_job(folders[0])
    for stale in folders[0].glob("meeting-*") if lock is not None else ():
        stale.unlink()
    for number in range(job.most_restarts + 1):
        died = _attempt(Attempt(folders, job.num_devices, number, lock))
        if died is None:
            return number
    raise TrainingError(
        f"{folders[0]}: a process died in each of {job.most_restarts + 1} attempts; the last one "
        f"wrote: {died}"
    )


def start_everywhere(folders: Sequence[Path]) -> int:
    """Start this machine's processes, by ``torchrun`` where there are more machines."""
    try:
        if machines() > 1:
            # Machines may share the folders.
            environment = {**os.environ, **_named()}
            return subprocess.run(_torchrun(folders), env=environment, check=False).returncode
        with held(folders[0]) as lock:
            start_processes(folders, lock)
    except OptbenchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def train_everywhere(folder: Path, lock: int | None = None) -> None:
    """The same, with an exception where the training fails; what torchrun writes is kept."""
    if machines() == 1:
        start_processes([folder], lock)
        return
    (folder / MISTAKE).unlink(missing_ok=True)
    environment = {**os.environ, **_named(), "OMP_NUM_THREADS": "1"}
    with (folder / "log-0.txt").open("ab") as log:
        code = subprocess.run(
            _torchrun([folder.resolve()]),
            env=environment,
            stdout=log,
            stderr=log,
            check=False,
            pass_fds=() if lock is None else (lock,),
        ).returncode
    if code:
        mistaken = (folder / MISTAKE).is_file()
        words = _mistake(folder) if mistaken else f"torchrun: exit {code}: {_last_words(folder, 0)}"
        raise TrainingError(words)


def machines() -> int:
    """The number of machines that take part, as ``torchrun`` reads it."""
    given = os.environ.get(MACHINES, "1")
    least, _, most = given.partition(":")
    if not (least.isascii() and least.isdigit() and int(least) >= 1 and most in ("", least)):
        raise ParameterError(
            f"{MACHINES} is {given!r}; it must be one whole number of machines from 1 on, such as "
            "2: a plan is made for a fixed number, so that ranges such as 1:2 are not possible"
        )
    return int(least)


def _torchrun(folders: Sequence[Path]) -> list[str]:
    job, _ = read_job(folders[0])
    here = os.environ.get("PET_NPROC_PER_NODE", str(-(-job.num_devices // machines())))
    own = [f"--nproc-per-node={here}", f"--max-restarts={job.most_restarts}"]
    run = [sys.executable, "-m", "torch.distributed.run", *own, "-m", MODULE]
    return [*run, *map(str, folders)]


def run_process(folders: Sequence[Path]) -> NoReturn:
    """Be one of the processes, as the environment says."""
    end_with_the_command()
    more = os.environ.get(MORE_PATHS, "").split(os.pathsep)
    sys.path.extend(each for each in more if each and each not in sys.path)
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
        words = f"{folder}: {error}" if len(folders) > 1 else str(error)
        write_whole(folders[0] / MISTAKE, json.dumps({"error": words}))
        print(error, file=sys.stderr, flush=True)
        os._exit(MISTAKEN)
    # Threads of gloo that still run when the interpreter takes itself down abort the process.
    os._exit(0)


def _pin(folder: Path, ranks: ProcessRanks) -> None:
    """Keep this process, and the threads that it will start, on its core."""
    cores = json.loads((folder / SETTINGS).read_text())["cores"]
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores[ranks.rank]})


def _attempt(attempt: Attempt) -> str | None:
    """Run all processes; return the last words of one that died, None if all are done."""
    first = attempt.first
    (first / MISTAKE).unlink(missing_ok=True)
    running = []
    try:
        for rank in range(attempt.size):
            log = (first / f"log-{rank}.txt").open("ab")
            with log:
                running.append(_started(attempt, rank, log))
        while True:
            codes = [each.poll() for each in running]
            # Others die of one that has found a mistake, and may do so before it has ended.
            if MISTAKEN in codes or (any(codes) and (first / MISTAKE).is_file()):
                raise TrainingError(_mistake(first))
            for rank, code in enumerate(codes):
                if code:
                    return f"process {rank} (exit {code}): {_last_words(first, rank)}"
            if all(code == 0 for code in codes):
                return None
            time.sleep(POLL_S)
    finally:
        for each in running:
            if each.poll() is None:
                each.kill()
            each.wait()
        with suppress(FileNotFoundError):
            attempt.meeting.unlink()


def _started(attempt: Attempt, rank: int, log: BinaryIO) -> subprocess.Popen[bytes]:
    folders = (str(each.resolve()) for each in attempt.folders)
    environment = {
        **os.environ,
        **_named(),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(attempt.size),
        "LOCAL_WORLD_SIZE": str(attempt.size),
        "TORCHELASTIC_RESTART_COUNT": str(attempt.number),
        "OMP_NUM_THREADS": "1",
        MEETING: f"file://{attempt.meeting}",
    }
    loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    if loopback:
        environment["GLOO_SOCKET_IFNAME"] = loopback[0]
    return subprocess.Popen(
        [sys.executable, "-m", MODULE, *folders],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=() if attempt.lock is None else (attempt.lock,),
    )


def _named() -> Mapping[str, str]:
    """The number of this process, and where the new one finds this package and other modules."""
    given = os.environ.get("PYTHONPATH", "")
    paths = [given] if given else []
    root = str(Path(__file__).resolve().parents[3])
    if root not in (*given.split(os.pathsep), *map(sysconfig.get_path, ("purelib", "platlib"))):
        paths.append(root)
    more = [os.path.abspath(each) for each in sys.path if each]
    return {
        COMMAND: str(os.getpid()),
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(paths),
        MORE_PATHS: os.pathsep.join(more),
    }


def _mistake(folder: Path) -> str:
    words: str = json.loads((folder / MISTAKE).read_text())["error"]
    return words


def _last_words(folder: Path, rank: int) -> str:
    return (folder / f"log-{rank}.txt").read_text(errors="replace")[-LAST_WORDS:].strip()
