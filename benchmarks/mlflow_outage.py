"""A study whose MLflow server on PostgreSQL is killed, stands still and comes back; writes
docs/results/mlflow_outage.md.

    python benchmarks/mlflow_outage.py [--seeds 20] [-o docs/results/mlflow_outage.md]

Three times during `optbench run` the server is in trouble: killed with all its processes, stopped
(SIGSTOP) for longer than the client waits, killed again and left so. When the study has ended it is
started once more, and `optbench sync` has to make every cell one run with its own metrics and
files. Exit code 1 when it does not. Needs PostgreSQL's programs (initdb, postgres, psql);
psycopg2-binary is installed into a folder of its own where it is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._postgres_cluster import HOST, database_url, program, start_cluster  # noqa: E402
from optbench.store.run_store import Store  # noqa: E402
from optbench.store.snapshots import load_plan  # noqa: E402
from optbench.track.tracking import Tracking  # noqa: E402

COMMAND = "python benchmarks/mlflow_outage.py"
STUDY = "outage"
DECLARED = """\
question = "Is every cell in MLflow after the server was in trouble?"
problems = ["jobshop:jobs=6,machines=4", "gpu_dag:tasks=12,gpus=4"]
solvers = ["random_rules", "heft", "fcfs"]
seeds = {seeds}
time_limit = "4s"
bound_limit = "1s"
"""
STILL_S = 14.0


@dataclass
class Machinery:
    """PostgreSQL and MLflow's server on it, in a folder of their own."""

    folder: Path
    postgres: subprocess.Popen[bytes] | None = None
    server: subprocess.Popen[bytes] | None = None
    ports: dict[str, int] = field(
        default_factory=lambda: {"postgres": free_port(), "mlflow": free_port()}
    )
    said: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.ports['mlflow']}"

    @property
    def database(self) -> str:
        return database_url(self.ports["postgres"])

    def start_postgres(self) -> None:
        self.postgres = start_cluster(self.folder, self.ports["postgres"])
        wait_until(lambda: listens(self.ports["postgres"]), "PostgreSQL")

    def start_server(self) -> None:
        words = [
            sys.executable,
            "-m",
            "mlflow",
            "server",
            "--host",
            HOST,
            "--port",
            str(self.ports["mlflow"]),
            "--workers",
            "1",
        ]
        words += [
            "--backend-store-uri",
            self.database,
            "--artifacts-destination",
            str(self.folder / "artifacts"),
        ]
        own = {
            "PYTHONPATH": str(self.folder / "packages"),
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }
        environment = {**os.environ, **own, "MLFLOW_DISABLE_TELEMETRY": "true"}
        with (self.folder / "mlflow.log").open("ab") as log:
            self.server = subprocess.Popen(
                words, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        wait_until(lambda: answers(f"{self.url}/health"), "MLflow's server")

    def signal(self, number: int) -> None:
        assert self.server is not None
        os.killpg(self.server.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self.server is not None
        self.server.wait()

    def arrived(self) -> int:
        """Runs in MLflow, as PostgreSQL has them; whether the server lives does not matter."""
        question = "select count(*) from runs where lifecycle_stage = 'active'"
        port = str(self.ports["postgres"])
        words = [
            program("psql"),
            "-h",
            HOST,
            "-p",
            port,
            "-U",
            "bench",
            "-d",
            "postgres",
            "-Atc",
            question,
        ]
        said = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
        return int(said) if said else -1

    def end(self) -> None:
        if self.server is not None and self.server.poll() is None:
            self.signal(signal.SIGCONT)
            self.kill()
        if self.postgres is not None:
            self.postgres.send_signal(signal.SIGINT)
            self.postgres.wait()


def free_port() -> int:
    with closing(socket.create_server((HOST, 0))) as free:
        return int(free.getsockname()[1])


def listens(port: int) -> bool:
    with closing(socket.socket()) as trial:
        trial.settimeout(1)
        return trial.connect_ex((HOST, port)) == 0


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def wait_until(there: Callable[[], bool], what: str, patience_s: float = 120.0) -> None:
    deadline = time.monotonic() + patience_s
    while not there():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} does not answer after {patience_s:g} s")
        time.sleep(0.1)


def optbench(workspace: Path, *words: str, uri: str = "") -> list[str]:
    """The command line in a workspace; the address travels in the environment."""
    given = [f"OPTBENCH_WORKSPACE={workspace}", f"MLFLOW_TRACKING_URI={uri}"]
    return ["env", *given, sys.executable, "-m", "optbench.cli.main", *words]


def output(words: list[str]) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(words)} ended with exit code {done.returncode}: "
            f"{done.stderr.strip()[-2000:]}"
        )
    return done.stdout


def make_workspace(folder: Path, seeds: int) -> Path:
    workspace = folder / "workspace"
    (workspace / "studies").mkdir(parents=True)
    (workspace / "optbench.toml").touch()
    (workspace / "studies" / f"{STUDY}.toml").write_text(DECLARED.format(seeds=seeds))
    return workspace


def run_through_trouble(machinery: Machinery, workspace: Path) -> tuple[float, dict[str, Any], str]:
    """Run the study; what happens to the server depends on how many cells are done."""
    store = Store(workspace / ".optbench")
    began = time.monotonic()
    words = optbench(workspace, "run", STUDY, "-n", "2", "--json", uri=machinery.url)
    runner = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def at(share: float, sent: int = 10**9) -> str:
        """Wait until so many of the cells are done, or so many runs have arrived."""
        while True:
            plans = sorted((store.folder / "studies" / STUDY).glob("*.json"))
            total = len(json.loads(plans[0].read_text())["cells"]) if plans else None
            arrived = machinery.arrived()
            if (
                runner.poll() is not None
                or arrived >= sent
                or (total is not None and len(store.records()) >= share * total)
            ):
                break
            time.sleep(0.1)
        return (
            f"{time.monotonic() - began:5.1f} s, {len(store.records())} of {total} cells "
            f"done, {max(arrived, 0)} runs there"
        )

    machinery.said.append(f"{at(0.4, sent=10)}: server killed (SIGKILL, all its processes)")
    machinery.kill()
    where = at(0.5)
    machinery.start_server()
    machinery.said.append(f"{where}: server started")
    where = at(0.75, sent=machinery.arrived() + 20)
    machinery.signal(signal.SIGSTOP)
    machinery.said.append(f"{where}: server stopped (SIGSTOP)")
    time.sleep(STILL_S)
    machinery.signal(signal.SIGCONT)
    machinery.said.append(f"{at(0.0)}: server goes on")
    machinery.said.append(f"{at(0.9)}: server killed, and left so")
    machinery.kill()
    out, err = runner.communicate()
    machinery.said.append(f"{at(0.0)}: the study has ended")
    return time.monotonic() - began, json.loads(out), err.strip()


def compare(workspace: Path, machinery: Machinery) -> tuple[int, int, int, list[str]]:
    """Cells, runs, files compared, and everything that is not as it should be."""
    store = Store(workspace / ".optbench")
    plan, records = load_plan(STUDY, store), store.records()
    client = Tracking(machinery.url, workspace=workspace).client
    experiment = client.get_experiment_by_name(f"optbench/{STUDY}")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], max_results=10_000)
    wrong, files = [], 0
    by_key: dict[str, list[Any]] = {}
    for run in runs:
        by_key.setdefault(run.data.tags.get("optbench.key", "parent"), []).append(run)
    for cell in plan.cells:
        found = by_key.pop(cell.key, [])
        if len(found) != 1:
            wrong.append(f"{cell.title}: {len(found)} runs")
            continue
        record, run = records[cell.key], found[0]
        if run.info.status != "FINISHED" or run.data.metrics.get("objective") != record.objective:
            wrong.append(
                f"{cell.title}: {run.info.status}, objective {run.data.metrics.get('objective')} "
                f"for {record.objective}"
            )
        if cell.kind == "solve":
            with tempfile.TemporaryDirectory() as name:
                there = Path(client.download_artifacts(run.info.run_id, "", name))
                for path in store.cell(cell.key).iterdir():
                    files += 1
                    if (there / path.name).read_bytes() != path.read_bytes():
                        wrong.append(f"{cell.title}: {path.name} differs")
                wrong += (
                    [] if (there / "gantt.html").is_file() else [f"{cell.title}: no gantt.html"]
                )
    wrong += [
        f"{len(found)} runs of {key}"
        for key, found in by_key.items()
        if (key, len(found)) != ("parent", 1)
    ]
    return len(plan.cells), len(runs), files, wrong


def synchronised(workspace: Path, machinery: Machinery) -> dict[str, Any]:
    """What `optbench sync` did for the study."""
    told = json.loads(output(optbench(workspace, "sync", "--json", uri=machinery.url)))
    study: dict[str, Any] = told["studies"][0]
    return study


def measure(folder: Path, seeds: int) -> tuple[str, bool]:
    machinery = Machinery(folder)
    if find_spec("psycopg2") is None:
        words = [sys.executable, "-m", "pip", "install", "-q", "psycopg2-binary"]
        words += ["--target", str(folder / "packages")]
        subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
    workspace = make_workspace(folder, seeds)
    try:
        machinery.start_postgres()
        machinery.start_server()
        took, told, err = run_through_trouble(machinery, workspace)
        began = time.monotonic()
        machinery.start_server()
        start_s = time.monotonic() - began
        began = time.monotonic()
        sent = synchronised(workspace, machinery)
        sync_s = time.monotonic() - began
        again = synchronised(workspace, machinery)
        cells, runs, files, wrong = compare(workspace, machinery)
    finally:
        machinery.end()
    began = time.monotonic()
    output(optbench(workspace, "run", STUDY, "-n", "2", "--json", "--force", "--no-track"))
    bare_s = time.monotonic() - began
    unchanged = again["unchanged"]
    right = not wrong and runs == cells + 1 == unchanged and told["done"] == cells
    postgres = output([program("postgres"), "--version"]).split()[2]
    lines = [
        "# A tracking server in trouble",
        "",
        f"A study of {cells} cells, two at a time, followed by MLflow {version('mlflow')} on",
        f"PostgreSQL {postgres}:",
        "",
        *(f"- {line}" for line in machinery.said),
        "",
        f"The run took {took:.1f} s, {told['done']} of {cells} cells done, {told['failed']}",
        f"failed; without tracking it takes {bare_s:.1f} s. It said:",
        "",
        *(f"> {line}" for line in err.splitlines()[-1:]),
        "",
        f"The server was started again ({start_s:.1f} s). `optbench sync` took {sync_s:.1f} s:",
        f"{sent['created']} runs created, {sent['updated']} completed or changed,",
        f"{sent['unchanged']} as they were, {sent['removed']} doubles removed.",
        "",
        f"Afterwards: {runs} runs for {cells} cells and their parent, {files} files compared byte",
        f"by byte, objectives compared; {len(wrong)} differences. A second `optbench sync` found",
        f"{unchanged} of {runs} runs as they should be.",
        "",
        *(f"- {line}" for line in wrong[:20]),
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python",
        f"{platform.python_version()}. `{COMMAND}`",
        "",
    ]
    return "\n".join(lines), right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "mlflow_outage.md"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="optbench-outage-") as name:
        text, right = measure(Path(name), args.seeds)
    args.output.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
