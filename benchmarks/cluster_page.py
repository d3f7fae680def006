"""docs/clusters.md followed to the letter on two machines, with the wheel, in an empty folder;
writes docs/results/cluster_page.md.

    python benchmarks/cluster_page.py

The two machines are namespaces of this one (network, host name, processes, mounts), joined by a
virtual cable at 10.0.0.1 and 10.0.0.2, so that every command of the page is run as it stands. Needs
root, util-linux, iproute2 and PostgreSQL's programs. Differences from the page: the wheel is built
from this tree and installed without its dependencies, which come from this environment; kernels
are compiled already; the token is copied by `cp`; Slurm is not here, and its batch script runs with
stand-ins for srun and scontrol that start everything on the head. Exit code 1 when a command fails
or does not do what it must.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._postgres_cluster import program  # noqa: E402
from benchmarks._two_machines import Machine, two_machines  # noqa: E402
from benchmarks.wheel import build_wheel  # noqa: E402

PAGE = ROOT / "docs" / "clusters.md"
REPORT = ROOT / "docs" / "results" / "cluster_page.md"
COMMAND = "python benchmarks/cluster_page.py"
EVERYWHERE, ON_HEAD, ON_NODE = "everywhere", "head", "node"
# Where the blocks of the page are run, in their order.
PLACES = (
    EVERYWHERE,  # install
    ON_HEAD,  # the token, which is then copied
    EVERYWHERE,  # the mode
    ON_HEAD,  # ray start --head
    ON_NODE,  # ray start --address
    ON_HEAD,  # ray status
    ON_HEAD,  # init, run, report
    ON_HEAD,  # tune
    ON_HEAD,  # train
    EVERYWHERE,  # ray stop
    ON_HEAD,  # new slurm
)
SRUN = """#!/bin/bash
# A stand-in for srun: it runs the command here, whatever node was meant.
while [[ "${1:-}" == --* ]]; do shift; done
export SLURM_CPUS_ON_NODE=1
exec "$@"
"""
SCONTROL = """#!/bin/bash
printf 'node1\\nnode1b\\n'
"""


@dataclass
class Walk:
    """A walk through the page: ``folder`` is where the reader stands, ``steps`` what he did."""

    head: Machine
    node: Machine
    folder: Path
    wheel: Path
    steps: list[tuple[str, str, float, str]] = field(default_factory=list)

    def follow(self, command: str, place: str) -> None:
        """Run a command where the page says; lasting ones also hold for what follows."""
        machines = {ON_HEAD: [self.head], ON_NODE: [self.node]}.get(place, [self.head, self.node])
        for machine in machines:
            began = time.monotonic()
            where = self.folder if machine is self.head else machine.home
            said = ""
            if command.startswith(("source ", "export ")):
                machine.lines.append(command)
                machine.run("true", where)
            elif command.startswith("pip install"):
                self.install(machine, where)
            elif command.startswith("cd "):
                self.folder = self.folder / command.split()[1]
            else:
                done = machine.run(command, where)
                said = last_line(done.stdout) or last_line(done.stderr)
            self.steps.append((machine.name, command, time.monotonic() - began, said))
            print(f"{machine.name}$ {command[:90]}  [{self.steps[-1][2]:.1f} s] {said}", flush=True)

    def install(self, machine: Machine, where: Path) -> None:
        """The wheel alone; its dependencies are this environment's."""
        machine.run(f"pip install -q --no-deps --no-index {self.wheel}", where)
        libraries = sysconfig.get_paths()["purelib"]
        site = next((machine.home / "optbench-env" / "lib").glob("python*")) / "site-packages"
        (site / "dependencies.pth").write_text(f"{libraries}\n")
        ray = machine.home / "optbench-env" / "bin" / "ray"
        start = "import sys; from ray.scripts.scripts import main; sys.exit(main())"
        ray.write_text(f"#!{ray.parent}/python\n{start}\n")
        ray.chmod(0o755)
        compiled = Path.home() / ".cache" / "optbench" / "kernels"
        if compiled.is_dir():
            shutil.copytree(compiled, machine.home / ".cache" / "optbench" / "kernels")


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:100] if lines else ""


def blocks() -> list[list[str]]:
    """The commands of the page, by block."""
    found = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.S | re.M)
    return [
        [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
        for block in found
    ]


def start_postgres(head: Machine, base: Path) -> None:
    """A server at 10.0.0.1:5432 with the user and the database of the page."""
    data = base / "pg"
    data.mkdir()
    shutil.chown(data, "postgres", "postgres")
    base.chmod(0o755)

    def as_postgres(words: str) -> None:
        head.run(f"setpriv --reuid=postgres --regid=postgres --clear-groups {words}", Path("/"))

    as_postgres(f"{program('initdb')} -D {data} -U optuna --auth=trust --no-sync")
    (data / "pg_hba.conf").write_text("host all all 10.0.0.0/24 trust\nlocal all all trust\n")
    options = f"-c listen_addresses=10.0.0.1 -c port=5432 -c unix_socket_directories={data}"
    as_postgres(f"{program('pg_ctl')} -D {data} -w -l {data}/log -o '{options}' start")
    as_postgres(f"{program('createdb')} -h 10.0.0.1 -U optuna trials")


def records_of(lab: Path) -> list[dict[str, object]]:
    lines = (lab / ".optbench" / "results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def hosts_of(records: list[dict[str, object]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for record in records:
        machine = record["machine"]
        assert isinstance(machine, dict)
        out[str(machine["host"])] = out.get(str(machine["host"]), 0) + 1
    return out


def walk_page(walk: Walk) -> list[str]:
    """Follow all blocks; return what does not hold."""
    found, wrong = blocks(), list[str]()
    if len(found) != len(PLACES):
        raise SystemExit(f"{PAGE.name} has {len(found)} blocks; PLACES says {len(PLACES)}")
    for number, (block, place) in enumerate(zip(found, PLACES, strict=True)):
        for command in block:
            walk.follow(command, place)
        if number == 1:
            (walk.node.home / ".ray").mkdir()
            shutil.copy2(walk.head.home / ".ray" / "auth_token", walk.node.home / ".ray")
        if number == 7:
            wrong += refusals(walk)
    return wrong


def refusals(walk: Walk) -> list[str]:
    """What the page says is refused: a journal on two machines, and a command without the token."""
    wrong = []
    journal = walk.head.run("optbench tune gpu_dag_tune --backend ray", walk.folder, check=False)
    if journal.returncode != 2 or "whose locks hold on one machine" not in journal.stderr:
        wrong.append(f"a journal was not refused: {journal.stderr[-500:]}")
    other = "env -u RAY_AUTH_MODE RAY_AUTH_MODE=disabled optbench run quickstart --backend ray"
    stranger = walk.head.run(other, walk.folder, check=False)
    if stranger.returncode != 2:
        wrong.append(f"no token, exit code {stranger.returncode}: {stranger.stderr[-500:]}")
    said = [last_line(journal.stderr), last_line(stranger.stderr)]
    walk.steps.append(("node1", "(refused) optbench tune gpu_dag_tune --backend ray", 0.0, said[0]))
    walk.steps.append(("node1", "(refused) optbench run ... without the token", 0.0, said[1]))
    return wrong


def run_batch(walk: Walk, base: Path) -> list[str]:
    """The batch script with stand-ins; everything must have ended with it."""
    stand_ins = base / "slurm"
    stand_ins.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (stand_ins / name).write_text(text)
        (stand_ins / name).chmod(0o755)
    shutil.rmtree(walk.folder / ".optbench")
    slurm = f"SLURM_SUBMIT_DIR={walk.folder} SLURM_JOB_ID=4711 SLURM_JOB_NODELIST=node1,node1b "
    slurm += f"SLURM_CPUS_ON_NODE=1 PATH={stand_ins}:$PATH"
    shown, wrong = "my_batch.sh optbench run quickstart --backend ray", list[str]()
    # First the time is up after 45 seconds, as Slurm says it by SIGTERM; then it is not.
    for limit, expected in (("timeout --foreground --preserve-status -s TERM 45 ", 130), ("", 0)):
        began = time.monotonic()
        done = walk.head.run(f"{slurm} {limit}bash {shown}", walk.folder, check=False)
        kept = f"{len(records_of(walk.folder))} records; {last_line(done.stdout)}"
        step = f"sbatch {shown}{' (SIGTERM after 45 s)' if limit else ''}"
        walk.steps.append(("node1", step, time.monotonic() - began, kept))
        if done.returncode != expected:
            wrong.append(f"the batch script ended with {done.returncode}: {done.stderr[-1500:]}")
        left = walk.head.run("pgrep -fa 'raylet|gcs_server' || true", walk.folder).stdout
        if "/raylet" in left or "/tmp/ray-4711" in left:
            wrong.append(f"the batch script left {left}")
    return wrong


def render(walk: Walk, facts: list[str], wrong: list[str], spent_s: float) -> str:
    said = COMMAND, f"{datetime.now(UTC):%Y-%m-%d}", platform.node(), metadata.version("ray")
    lines = [
        "# The page from laptop to cluster, followed",
        "",
        f"`{said[0]}`, {said[1]}, on {said[2]} ({os.cpu_count()} cores), ray {said[3]}; "
        f"{spent_s:.0f} s, while other work ran on the machine.",
        "",
        "Every command of [clusters.md](../clusters.md), on two machines that are namespaces of "
        "this one with host names, networks, processes and temporary folders of their own. The "
        "wheel was built from this tree and installed without its dependencies, which come from "
        "the development environment; kernels had been compiled before; the token was copied by "
        "`cp`. Slurm is not installed here: "
        "its script ran with stand-ins for `srun` and `scontrol` that run everything on node1.",
        "",
        f"All did what they must: **{'yes' if not wrong else '; '.join(wrong)}**.",
        "",
        *(f"- {fact}" for fact in facts),
        "",
        "| on | command | seconds | last line |",
        "| --- | --- | ---: | --- |",
    ]
    for name, command, seconds, words in walk.steps:
        safe = words.replace("|", "\\|")
        lines.append(f"| {name} | `{command}` | {seconds:.1f} | {safe} |")
    return "\n".join([*lines, ""])


def main() -> int:
    began = time.monotonic()
    base = Path(tempfile.mkdtemp(prefix="optbench-page-", dir="/var/tmp"))
    path = f"{Path(sys.base_prefix) / 'bin'}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    try:
        wheel = build_wheel(base)
        with two_machines(base, path) as (head, node):
            start_postgres(head, base)
            (base / "empty").mkdir()
            walk = Walk(head, node, base / "empty", wheel)
            wrong = walk_page(walk)
            records = records_of(walk.folder)
            keys = [str(record["key"]) for record in records]
            hosts = hosts_of(records)
            by_host = ", ".join(f"{n} on {name}" for name, n in sorted(hosts.items()))
            trained = (walk.folder / "prices.json").exists()
            facts = [
                f"{len(records)} records in the store of the command's machine, each once: "
                f"{'yes' if len(set(keys)) == len(keys) else 'no'}.",
                f"Cells by host: {by_host}.",
                f"`prices.json` is on node1: {'yes' if trained else 'no'}.",
                f"Files of node2's cache: "
                f"{len(list((node.home / '.cache').rglob('cluster/files/*/*')))}; an `.optbench/` "
                f"there: {'yes' if list(node.home.rglob('.optbench')) else 'no'}.",
            ]
            if set(hosts) != {"node1", "node2"} or len(set(keys)) != len(keys):
                wrong.append(f"hosts {hosts}, {len(keys)} records")
            wrong += run_batch(walk, base)
            REPORT.write_text(render(walk, facts, wrong, time.monotonic() - began))
    finally:
        subprocess.run(["rm", "-rf", str(base)], check=False)
    print("\n".join(wrong) or "all commands did what they must")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
