"""A process that has loaded what commands share, and forks one process per command.

A command of the shell takes half a second to import its libraries. Here each command is still a
process of its own, with its own folder, environment, output and exit, and runs the module
``optbench.cli.main`` as ``python -m`` does. Plug-ins are not loaded in advance: where they are
looked for depends on the workspace.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

MAIN = "optbench.cli.main"
ROOT = Path(__file__).parents[2]
LIBRARIES = (
    "highspy",
    "ortools.sat.python.cp_model",
    "pyomo.environ",
    "rich.table",
    "scipy.sparse",
)
MODULES = (
    "optbench.api",
    "optbench.cli.terminal.live_line",
    "optbench.cli.terminal.result_lines",
    "optbench.cli.terminal.work",
    "optbench.cli.verbs.run_study",
    "optbench.cli.verbs.solve",
    "optbench.execute.local",
    "optbench.model.builder",
    "optbench.formats.format_registry",
    "optbench.plugins.policy",
    "optbench.run.runner",
    "optbench.shapes.milp.program",
    "optbench.shapes.pyomo_models.pyomo_shape",
    "optbench.views.milp",
    "optbench.sim.primal.chance",
    "optbench.sim.sampling",
    "optbench.store.run_store",
    "optbench.study.grids",
    "optbench.views.cpsat.cpsat_view",
)
# Variables that are read when a library is imported or a kernel loaded: too early for a command to
# set them.
READ_EARLY = ("PYTHON", "NUMBA", "OMP_", "OPTBENCH_CACHE")
# The packages whose folders depend on the workspace.
PLUGINS = ("optbench.plugins.problems", "optbench.plugins.solvers", "optbench.plugins.studies")
MAX_REQUEST_BYTES = 1 << 20


@dataclass(frozen=True)
class FinishedCommand:
    """The exit code of a command, negative for a signal, and what it wrote."""

    code: int
    out: str
    err: str


class CommandServer:
    """The end of the tests: starts the process, and runs commands in it one after the other."""

    def __init__(self) -> None:
        from optbench.execute.zygote import ENVIRONMENT

        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel = ours
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.command_server", str(theirs.fileno())],
                cwd=ROOT,
                env={**os.environ, **ENVIRONMENT, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                # Pipes, as those of the commands: Python looks whether a file can be rewound.
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )

    def run(
        self, words: list[str], folder: Path, environment: dict[str, str], timeout_s: float
    ) -> FinishedCommand:
        """``optbench WORDS`` in a folder; killed after the timeout."""
        request = json.dumps({"words": words, "folder": str(folder), "environment": environment})
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        socket.send_fds(self.channel, [request.encode()], [out_end, err_end])
        os.close(out_end)
        os.close(err_end)
        timer = threading.Timer(timeout_s, os.kill, (self._number(), 9))
        timer.start()
        texts = {out: "", err: ""}
        reader = threading.Thread(target=lambda: texts.update({err: read_text(err)}))
        reader.start()
        texts[out] = read_text(out)
        reader.join()
        code = self._number()
        timer.cancel()
        return FinishedCommand(code, texts[out], texts[err])

    def _number(self) -> int:
        return int(self.channel.recv(64) or self._fail())

    def _fail(self) -> int:
        raise RuntimeError(f"the command server has ended: {self.close()}")

    def close(self) -> str:
        """End the process; return what it wrote itself."""
        self.channel.close()
        return self.process.communicate()[1].decode()


def read_text(end: int) -> str:
    with open(end, encoding="utf-8") as file:
        return file.read()


def preload() -> None:
    """Import what commands share and load compiled kernels, but no plug-in."""
    from optbench.compiling.kernel_table import BOUNDING, POLICIES, prepare

    for name in (*LIBRARIES, *MODULES):
        importlib.import_module(name)
    prepare(BOUNDING | POLICIES)
    found = [name for name in (*PLUGINS, MAIN) if name in sys.modules]
    if found:
        raise RuntimeError(f"loaded in advance: {found}")
    gc.collect()
    gc.freeze()


def serve(channel: socket.socket) -> None:
    """Fork a process for each request; it reports the process number, then the exit code."""
    while True:
        message, ends, _, _ = socket.recv_fds(channel, MAX_REQUEST_BYTES, 2)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            channel.close()
            for number, end in enumerate(ends, start=1):
                os.dup2(end, number)
                os.close(end)
            run_command(**json.loads(message))
        for end in ends:
            os.close(end)
        channel.send(str(pid).encode())
        channel.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def run_command(words: list[str], folder: str, environment: dict[str, str]) -> NoReturn:
    """Be ``python -m optbench.cli.main WORDS`` in this folder, up to its exit.

    Modules are not taken down at the end: that would copy all the memory shared with the server.
    """
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder
    sys.argv = [MAIN, *words]
    try:
        runpy.run_module(MAIN, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        for thread in threading.enumerate():
            if not thread.daemon and thread is not threading.main_thread():
                thread.join()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(ended.code or 0))
    raise RuntimeError(f"{MAIN} did not exit")


if __name__ == "__main__":
    preload()
    serve(socket.socket(fileno=int(sys.argv[1])))
