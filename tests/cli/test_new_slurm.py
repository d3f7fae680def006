"""``optbench new slurm``: the batch script is valid, and starts Ray with what each node has.

Slurm is not here: its commands are stand-ins that give two nodes of different sizes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ray_nodes import free_port

COMMAND = (sys.executable, "-m", "optbench.cli.main")
BASH = shutil.which("bash") or "bash"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Slurm runs on Linux")

STAND_INS = {
    "scontrol": "printf 'big\\nsmall\\n'",
    "hostname": "echo 127.0.0.1",
    # What Slurm sets in a step is of the node on which the step runs.
    "srun": """
node=big
while [[ "${1:-}" == --* ]]; do
    [[ "$1" == --nodelist=* ]] && node=${1#*=}
    shift
done
[ "$node" = big ] && export SLURM_CPUS_ON_NODE=64 SLURM_GPUS_ON_NODE=4
[ "$node" = small ] && export SLURM_CPUS_ON_NODE=8
NODE=$node exec "$@"
""",
    # A head that listens, as Ray's does, and nodes that stay until they are told to go.
    "ray": """
echo "$NODE $*" >> "$SAID"
[[ "$*" == *--head* ]] || exec sleep 60
exec "$PYTHON" -c "import os, socket, time
host, port = os.environ['RAY_ADDRESS'].split(':')
listening = socket.create_server((host, int(port)))
time.sleep(60)"
""",
    # The token is made by Python; that all nodes have joined is asked of Ray, which is not here.
    "python": '[ "$1" = - ] || exec "$PYTHON" "$@"',
}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("workspace")
    (root / "optbench.toml").touch()
    environment = {**os.environ, "OPTBENCH_WORKSPACE": str(root)}
    subprocess.run([*COMMAND, "new", "slurm", "my_batch"], env=environment, cwd=root, check=True)
    return root / "my_batch.sh"


def run(script: Path, folder: Path, **settings: str) -> list[str]:
    """Run the batch script on the two nodes; return what they started, the head first."""
    stand_ins = folder / "bin"
    stand_ins.mkdir()
    for name, text in STAND_INS.items():
        (stand_ins / name).write_text(f"#!{BASH}\n{text}")
        (stand_ins / name).chmod(0o755)
    port = free_port()
    own = {name: each for name, each in os.environ.items() if not name.startswith("SLURM_")}
    environment = {
        **own,
        "PATH": f"{stand_ins}:{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "SAID": str(folder / "said"),
        "SLURM_SUBMIT_DIR": str(folder),
        "SLURM_JOB_ID": str(port),
        "SLURM_JOB_NODELIST": "big,small",
        # Of the node on which the script itself runs.
        "SLURM_CPUS_ON_NODE": "64",
        "SLURM_GPUS_ON_NODE": "4",
        **settings,
    }
    text = script.read_text()
    # A free port in place of one by the number of the job.
    assert "port=$((20000 + SLURM_JOB_ID % 20000))" in text
    here = folder / "batch.sh"
    here.write_text(text.replace("20000 + SLURM_JOB_ID % 20000", "SLURM_JOB_ID"))
    wait = f'until [ "$(wc -l < {folder}/said)" = 2 ]; do sleep 0.05; done; echo "ran here"'
    done = subprocess.run(
        [BASH, str(here), BASH, "-c", wait],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0 and done.stdout == "ran here\n", done.stderr
    return sorted((folder / "said").read_text().splitlines())


def test_the_script_is_valid(script: Path) -> None:
    subprocess.run([BASH, "-n", str(script)], check=True)
    assert "@NAME@" not in script.read_text() and "sbatch my_batch.sh" in script.read_text()


def test_each_node_starts_with_its_own_cores_and_gpus(script: Path, tmp_path: Path) -> None:
    head, node = run(script, tmp_path)
    start = "start --block --disable-usage-stats"
    assert head.startswith(f"big {start} --num-cpus=64 --num-gpus=4 --head ")
    assert node.startswith(f"small {start} --num-cpus=8 --num-gpus=0 --address=127.0.0.1:")
    assert "memory" not in head + node


def test_memory_per_node_or_cpu_is_passed(script: Path, tmp_path: Path) -> None:
    """Of 1,000 MB, eight tenths for cells (838,860 B of each MB) and one for Ray's objects."""
    for name, setting, first, second in (
        ("per-node", {"SLURM_MEM_PER_NODE": "1000"}, 1000, 1000),
        ("per-cpu", {"SLURM_MEM_PER_CPU": "100"}, 6400, 800),
    ):
        (tmp_path / name).mkdir()
        said = run(script, tmp_path / name, **setting)
        for line, megabytes in zip(said, (first, second), strict=True):
            memory = f"--memory={megabytes * 838860}"
            assert f"{memory} --object-store-memory={megabytes * 104857} " in line
