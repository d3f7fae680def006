"""A cell: a child that a slot forks and confines before plug-in code runs, for one job."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import os
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optbench.execute.tasks import mentions_out_of_memory, perform, write_answer
from optbench.sandbox.confine import (
    SHARED_MEMORY,
    Confinement,
    close_inherited,
    confine,
    environment,
)
from optbench.workspace import KEEPS_IN

# Exit code of a cell that could not be confined or could not write its answer.
NOT_CONFINED, NO_ANSWER = 97, 98


def run_cell_process(job: Mapping[str, Any], output: int, slot: int) -> None:
    """Run one job in this forked child and exit; its output goes to the file ``output``."""
    code = NOT_CONFINED
    try:
        folder = Path(job["folder"])
        _redirect(output)
        close_inherited()
        _enter_folder(folder, job)
        confine(_confinement(folder, job), slot)
        code = _work(job, folder)
    except OSError:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def _work(job: Mapping[str, Any], folder: Path) -> int:
    """Run the job and return the exit code; exceptions of plug-ins outside ``solve`` end here."""
    try:
        perform(job["kind"], job["payload"], folder)
        _end_helpers()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        traceback.print_exc()
        message = f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError):
            refusal = "memory_limit" if mentions_out_of_memory(message) else "crashed"
            write_answer({"refusal": refusal, "message": message[:2000]}, folder)
        return NO_ANSWER
    return 0


def _end_helpers() -> None:
    """Shut down pools and run ``atexit`` functions, as the interpreter does at its end."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()


def _redirect(output: int) -> None:
    """Send standard output and error to the cell's output file and never to a terminal."""
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)


def _enter_folder(folder: Path, job: Mapping[str, Any]) -> None:
    """Make the job's folder the current one and set the environment that the job needs."""
    os.environ.update(environment(folder, job["threads"]))
    _place(job["placement"])
    _set_library_threads(job["threads"])
    (folder / "tmp").mkdir()
    tempfile.tempdir = None
    faulthandler.enable()
    if job["compiled"] is not None:
        from optbench.compiling.compiled import write_caches_beneath

        write_caches_beneath(Path(job["compiled"]))
        os.environ[KEEPS_IN] = job["compiled"]
    gc.enable()


def _place(placement: Mapping[str, Any]) -> None:
    """Keep this process tree to the cores and devices that were reserved for it."""
    if placement["cores"] is not None:
        os.sched_setaffinity(0, placement["cores"])
    if placement["gpus"] is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(placement["gpus"])
        # Ray, NVML and CUDA mean the same device by a number only in this order.
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    elif "CUDA_VISIBLE_DEVICES" in os.environ:
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")


def _set_library_threads(threads: int) -> None:
    """Set the number of threads in libraries that were loaded with another one."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    if "numba.np.ufunc.parallel" in sys.modules:
        sys.modules["numba"].config.NUMBA_NUM_THREADS = threads
        sys.modules["numba.np.ufunc.parallel"].NUM_THREADS = threads  # type: ignore[attr-defined]


def _confinement(folder: Path, job: Mapping[str, Any]) -> Confinement:
    writable = [Path(job["compiled"])] if job["compiled"] is not None else []
    if job["threads"] > 1:  # locks and queues between processes are files in this folder
        writable.append(SHARED_MEMORY)
    limits = job["limits"]
    return Confinement(
        folder,
        writable,
        limits["cpu_s"],
        limits["memory_mb"],
        job["user_threads"],
        job["landlock"],
        job["placement"]["network"],
    )


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
