"""A shape of one's own on the command line, and models that disagree with verify: python
benchmarks/shape_commands.py writes docs/results/shapes.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.sample_files.disagreeing_shapes import CHECK, ROWS, write_disagreeing  # noqa: E402
from tests.sample_files.packing_workspace import FIRST_FIT, PACKING  # noqa: E402
from tests.sample_files.serving_workspace import FIRST_ROOM, SERVING, TIGHTEST  # noqa: E402
from tests.sample_files.shaped_workspace import PACK, SERVE  # noqa: E402

TARGET = ROOT / "docs" / "results" / "shapes.md"
SUITE = """from optbench.testing import ProblemConformance, ShapeConformance, SolverConformance


class TestPacking(ShapeConformance):
    problem = "packing:services=4"


class TestFamily(ProblemConformance):
    problem = "packing:services=4"


class TestFirstFit(SolverConformance):
    solver, problems = "first_fit", ("packing:services=4",)
"""
BREAK = 'sed -i \'s/"gpu": .*/"gpu": [0, 0, 0, 0]/\' best.json'
WHOLE = (
    "optbench list packing:services=4",
    "optbench solve packing:services=4 -q -o best.json",
    "optbench bound packing:services=4",
    "optbench solve packing:services=4 -s fcfs",
    "optbench convert packing:services=4 four.json",
    "head -n 6 four.json",
    "optbench solve four.json -s first_fit -q --json | grep -E 'hash|objective'",
    "optbench solve packing:services=4 -s first_fit -q --json | grep -E 'hash|objective'",
    "optbench convert four.json four.mps --to mps",
    "optbench verify four.json best.json",
    f"{BREAK}; optbench verify four.json best.json",
    "python -m pytest -q -p no:cacheprovider test_packing.py 2>&1 | tail -n 1",
)
FORGETS = (
    "optbench solve careless:services=3 -s stack",
    "optbench bound careless:services=3 --method stack",
    "optbench solve careless:services=3 -q -o ok.json | grep optimal",
    (
        'sed \'s/"gpu": .*/"gpu": [0, 0, 0]/\' ok.json > start.json; '
        "optbench solve careless:services=3 --warm-start start.json"
    ),
)
LACKS = (
    "optbench solve roomy:services=3",
    "optbench solve roomy:services=3 -s cpsat",
    "optbench bound roomy:services=3 --method highs",
)


STUDIED = (
    "cat studies/pack.toml",
    "optbench run pack 2>/dev/null",
    "optbench run pack --json 2>/dev/null | grep -E '\"(ran|skipped)\"'",
    "optbench report pack -o report.html",
    "sqlite3 mlflow/mlflow.db 'SELECT count(*) FROM metrics WHERE key = \"study_gap\"'",
    "cat gaps.py",
    "python gaps.py",
)
PLAYED = (
    "optbench list serving",
    "optbench simulate serving -s first_room",
    "optbench simulate serving -s tightest",
    "optbench solve serving -q",
    "optbench run serve 2>/dev/null",
)
GAPS = """from optbench.testing import assert_gap

print(assert_gap("highs", "packing:services=4", seeds=4, at_most=0.01))
"""


def studied(folder: Path) -> Path:
    """A workspace with both shapes, their solvers and policies, and a study of each."""
    files = {
        "optbench.toml": "",
        "problems/packing.py": PACKING,
        "problems/serving.py": SERVING,
        "solvers/first_fit.py": FIRST_FIT,
        "solvers/first_room.py": FIRST_ROOM,
        "solvers/tightest.py": TIGHTEST,
        "studies/pack.toml": PACK,
        "studies/serve.toml": SERVE,
        "gaps.py": GAPS,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def shown(command: str, folder: Path) -> str:
    """A command with what it prints, and its exit code."""
    words = command.replace("optbench ", f"{sys.executable} -m optbench.cli.main ")
    if words.startswith("python "):
        words = f"{sys.executable} {words.removeprefix('python ')}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPTBENCH_WORKSPACE": str(folder)}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", words], cwd=folder, env=environment, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    text = (done.stdout + done.stderr).replace(str(folder), "~/lab").strip("\n")
    return f"$ {command}\n{text}\nexit code {done.returncode}\n"


def block(commands: tuple[str, ...], folder: Path) -> list[str]:
    return ["```console", *(shown(command, folder) for command in commands), "```", ""]


def disagreements(folder: Path) -> list[str]:
    """What happens where model and verify disagree."""
    return [
        "## verify forgets a constraint",
        "",
        f"The shape `careless` is the same, without `{CHECK}`. What its verify accepts and the "
        "model forbids stops every",
        "command that has such a decision, with the row's name. HiGHS works on the model, "
        "which is right: what it finds is right too.",
        "",
        *block(FORGETS, folder),
        "## The model forgets a constraint",
        "",
        f"In the shape `roomy` the rows `{ROWS}`",
        "have a right-hand side that always holds. A point of that model is a decision that "
        "verify refuses; the message names the constraint.",
        "",
        *block(LACKS, folder),
        "`bound` alone proves the model and has no decision: of a model that lacks a "
        "constraint its bound is valid and weak. In Python the same",
        "cases raise a `ContradictionError` "
        "(`tests/shapes/pyomo_models/test_packing_shape.py`); `ShapeConformance` finds "
        "both without a solver that",
        "runs into them (`tests/testing/test_shape_suite.py`: eight mistakes, each found "
        "by the test that is for it).",
        "",
        "Task schedules: each verified one of 15 sets of tiny instances, and what four solvers "
        "find on the hand-solved cases, satisfies every row of the full",
        "formulations with the same objective within 2^-40 of the sum of absolute terms, "
        "computed in fractions",
        "(`pytest tests/views/test_milp_enumeration.py`).",
        "",
    ]


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        for part in ("models", "studies"):
            (Path(name) / part).mkdir()
        folder, studies = write_disagreeing(Path(name) / "models"), studied(Path(name) / "studies")
        (folder / "test_packing.py").write_text(SUITE)
        lines = [
            "# A shape of one's own, and models that disagree with verify",
            "",
            "Written by `python benchmarks/shape_commands.py`. The shape is "
            "`tests/sample_files/packing_workspace.py`: services packed",
            "onto GPUs, declared in one file of the workspace, with a solver of ten lines.",
            "",
            *block(WHOLE, folder),
            "The conformance suite of the last command:",
            "",
            "```text",
            *SUITE.strip().splitlines(),
            "```",
            "",
            "## A study of it",
            "",
            *block(STUDIED, studies),
            "## A shape that unfolds in time, and two policies",
            "",
            "`tests/sample_files/serving_workspace.py`: services arrive at GPUs, and each policy "
            "sees the one at the door and the room that is left.",
            "",
            *block(PLAYED, studies),
            "Both workspaces, from an empty folder with the installed wheel: "
            "`pytest tests/packaging/test_wheel_workspaces.py`.",
            "",
            *disagreements(folder),
        ]
    TARGET.write_text("\n".join(lines))
    sys.stdout.write(TARGET.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
