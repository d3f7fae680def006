"""Libraries that can get in each other's way, each combination in a fresh process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import optbench

SOLVE_WITH_BOTH = """
import highspy
from ortools.sat.python import cp_model

lp = highspy.Highs()
lp.setOptionValue("output_flag", False)
x = lp.addVariable(lb=3, obj=1)
lp.minimize()
model = cp_model.CpModel()
y = model.new_int_var(4, 9, "y")
model.minimize(y)
solver = cp_model.CpSolver()
solver.solve(model)
print(lp.getInfo().objective_function_value, solver.objective_value)
"""


def run(code: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("first", ["import highspy", "from ortools.sat.python import cp_model"])
def test_highspy_and_ortools_share_a_process_in_either_order(first: str) -> None:
    # min x, x >= 3 and min y, y in 4..9.
    assert run(f"{first}\n{SOLVE_WITH_BOTH}") == "3.0 4.0"


def test_the_folder_mlflow_does_not_shadow_the_library() -> None:
    root = Path(__file__).parents[1]
    assert not (root / "mlflow" / "__init__.py").exists()
    located = run("import importlib.util as u; print(u.find_spec('mlflow').origin)", cwd=root)
    assert "site-packages" in Path(located).parts


def test_importing_optbench_loads_nothing_heavy() -> None:
    code = (
        "import sys, optbench; print([m for m in "
        "('numpy','torch','pyomo','ortools','highspy','rich') if m in sys.modules])"
    )
    assert run(code) == "[]"


def test_every_lazy_name_is_there_and_known_to_type_checkers() -> None:
    for name, home in optbench._HOME.items():
        assert getattr(optbench, name) is getattr(import_module(home), name)
    typed = re.findall(
        r"^    from (\S+) import (\w+) as \2$",
        Path(optbench.__file__).read_text(),
        flags=re.MULTILINE,
    )
    folders = {name: home.rpartition(".")[0] for name, home in optbench._MODULES.items()}
    assert {name: home for home, name in typed} == optbench._HOME | folders
    assert set(optbench._HOME) <= set(dir(optbench))
    with pytest.raises(AttributeError, match="no attribute 'solv'"):
        getattr(optbench, "sol" + "v")


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom optbench.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'torch', 'pyomo', 'ortools', 'highspy', 'mlflow') if m in "
        "sys.modules])"
    )
    assert run(code).splitlines()[-1] == "[]"


def test_a_worker_that_is_spawned_sees_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "optbench.toml").touch()
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "mine.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "import optbench as ob\n"
        "@dataclass\n"
        "class Mine(ob.Solver):\n"
        "    '''Nothing at all.'''\n"
        "    k: int = 3\n"
        "    def solve(self, instance, run):\n"
        "        return None\n"
    )
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing as mp, os\n"
        "from optbench.plugins.discovery import load_solver\n"
        "def square(solver):\n"
        "    return type(solver).__module__, solver.k ** 2\n"
        "if __name__ == '__main__':\n"
        "    _, solver = load_solver('mine:k=5')\n"
        "    os.chdir('/')\n"
        "    for method in ('spawn', 'forkserver'):\n"
        "        with mp.get_context(method).Pool(1) as pool:\n"
        "            print(method, *pool.apply(square, (solver,)))\n"
    )
    env = {key: value for key, value in os.environ.items() if key != "OPTBENCH_WORKSPACE"}
    done = subprocess.run(
        [sys.executable, script.name],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
    )
    name = "optbench.plugins.solvers.mine"
    assert done.stdout.splitlines() == [f"spawn {name} 25", f"forkserver {name} 25"], done.stderr


def test_the_data_fixture_never_skips_under_ci(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text("def test_it(data_dir):\n    pass\n")
    env = {key: value for key, value in os.environ.items() if key not in ("OPTBENCH_DATA", "CI")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    outside = subprocess.run(
        command, env=env, capture_output=True, text=True, cwd=tmp_path, timeout=100
    )
    assert "1 skipped" in outside.stdout
    under = subprocess.run(
        command, env=env | {"CI": "true"}, capture_output=True, text=True, cwd=tmp_path, timeout=100
    )
    assert "OPTBENCH_DATA is not set; under CI" in under.stdout and under.returncode == 1
