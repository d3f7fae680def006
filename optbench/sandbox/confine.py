"""Confine a fresh child process before it runs any code of a plug-in."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optbench.sandbox import capabilities, landlock, process_tree, seccomp
from optbench.sandbox.system_calls import IS_LINUX, PR_SET_PDEATHSIG, prctl
from optbench.units import BYTES_PER_MB

# A file of a cell may not grow beyond this.
MAX_FILE_MB = 1024
# Hard limits behind the polled ones: the requested address space may exceed the memory used, and a
# clock tick may be late.
DATA_SHARE, DATA_MB, CPU_GRACE_S = 1.5, 1024.0, 5
# RLIMIT_NPROC counts every thread of the user: this many above the existing ones, for all cells
# together.
SPARE_THREADS = 1024
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Confinement:
    """Where a child may write, its limits, and the folder of its temporary files; without
    ``network`` it makes no sockets but pairs of its own.
    """

    folder: Path
    writable: Sequence[Path]
    cpu_s: float
    memory_mb: float
    user_threads: int | None
    landlock: bool = True
    network: bool = True


def enforced_protections(with_landlock: bool = True, network: bool = True) -> dict[str, Any]:
    """Return which protections this machine enforces, for the record of a cell."""
    version = landlock.landlock_version() if with_landlock else 0
    out = {"landlock": version, "seccomp": seccomp.is_available(), "tree": IS_LINUX}
    # Landlock alone leaves Multipath TCP and sockets that are files.
    return out if network else {**out, "no_tcp": seccomp.is_available()}


def confine(confinement: Confinement, parent: int) -> None:
    """Confine this child; raise OSError when a protection of the kernel cannot be set up."""
    if IS_LINUX:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the death signal was set
        os._exit(1)
    os.setsid()
    for name, default in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_DFL),
    ):
        signal.signal(name, default)
    _limit(confinement)
    if IS_LINUX:
        # The kernel should kill it first when memory is short.
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    capabilities.drop_capabilities()
    if confinement.landlock and landlock.landlock_version():
        folders = [confinement.folder, *confinement.writable]
        landlock.write_only_beneath(folders, confinement.network)
    if seccomp.is_available():
        seccomp.install_filter(confinement.network)


def _limit(confinement: Confinement) -> None:
    data = process_tree.data_size_mb(os.getpid()) + max(
        DATA_SHARE * confinement.memory_mb, confinement.memory_mb + DATA_MB
    )
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, MAX_FILE_MB * BYTES_PER_MB)
    _lower(resource.RLIMIT_CPU, int(confinement.cpu_s) + CPU_GRACE_S)
    if IS_LINUX:
        _lower(resource.RLIMIT_DATA, int(data * BYTES_PER_MB))
    if confinement.user_threads is not None:
        _lower(resource.RLIMIT_NPROC, confinement.user_threads)


def _lower(limit: int, value: int) -> None:
    """Set the soft limit and the hard limit above it; neither is ever raised."""
    _, hard = resource.getrlimit(limit)
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (most, most))


def thread_limit() -> int | None:
    """Return RLIMIT_NPROC, which stops fork bombs; None for root, to whom it does not apply."""
    if os.geteuid() == 0:
        return None
    if not IS_LINUX:
        import psutil

        return len(psutil.pids()) + SPARE_THREADS
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == os.geteuid():
                count += len(os.listdir(f"/proc/{name}/task"))
    return count + SPARE_THREADS


def raise_priority() -> None:
    """Run this process, but not its children, first: a fork bomb must not delay its watch."""
    if not IS_LINUX:
        return
    with contextlib.suppress(PermissionError):  # without this permission, RLIMIT_NPROC applies
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def environment(folder: Path, threads: int) -> Mapping[str, str]:
    """Return a job's environment: temporary files in its folder, the number of its threads."""
    temporary = str(folder / "tmp")
    out = dict.fromkeys(("TMPDIR", "TEMP", "TMP", "MPLCONFIGDIR", "JOBLIB_TEMP_FOLDER"), temporary)
    out |= dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
        str(threads),
    )
    return out


def close_inherited() -> None:
    """Close the parent's sockets and files in the child."""
    os.closerange(3, 1 << 20 if sys.platform == "linux" else 4096)
