"""The table of compiled code: what each solver runs is in it, loaded before the clock starts, and
compiled once per machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import optbench as ob
from optbench.api import load_compiled_code, load_target
from optbench.compiling.kernel_table import KERNELS, are_compiled, kernels_used_by, prepare
from optbench.errors import UnknownNameError
from optbench.execute.preload import _needed
from optbench.plugins.discovery import kernels_of, load_class, names


def runs_kernels(name: str) -> bool:
    """Whether a built-in solver may run kernels: policies of co-location and their ILP do not."""
    solver: type[ob.Solver] = load_class("solver", name)
    built_in = "solvers" in str(solver.__module__)
    return built_in and bool(solver.shapes & {"schedule", "formulate"})


OWN = [name for name in names("solver") if runs_kernels(name)]

# Of each solver an instance that it takes; a child per solver says what was loaded after the clock
# had started.
LATE = """
import json, os, sys
import optbench as ob
from optbench.api import load_target
from optbench.plugins.discovery import load_solver, names
from optbench.plugins.protocol import check_supported
from optbench.plugins import protocol
from optbench.plugins.policy import Policy
from optbench.compiling.kernel_cache import KernelCache
from optbench.errors import UnsupportedError

targets = ("jobshop:jobs=2,machines=2", "gpu_dag:tasks=4", "geo_dc:days=0.005", \
"geo_dc:days=0.005,drain=yes,minimize=cost")
instances = [load_target(target) for target in targets]
instances.append(instances[0].with_objective(ob.Objective.weighted({"makespan": 1.0})))
inside, late = [False], []
load = KernelCache._load_overload
began = protocol.Run.__post_init__

def loaded(self, sig, context):
    if inside[0]:
        late.append(self.files.name)
    return load(self, sig, context)

def begin(self):
    began(self)
    inside[0] = True

KernelCache._load_overload, protocol.Run.__post_init__ = loaded, begin
for name in json.loads(sys.argv[1]):
    reader, writer = os.pipe()
    if os.fork() == 0:
        ran = 0
        for instance in instances:
            solver = load_solver(name)[1]
            try:
                check_supported(solver, name, instance)
            except UnsupportedError:
                continue
            if instance.num_tasks > 10 and not isinstance(solver, Policy):
                continue  # the models of exact solvers take longer than the rest of this test
            inside[0] = False
            ob.solve(instance, solver, work_limit=1.0, time_limit_s=1.0, \
bound=instance is instances[-1])
            ran += 1
        os.write(writer, json.dumps([name, ran, late]).encode())
        os._exit(0)
    os.close(writer)
    print(os.fdopen(reader).read(), flush=True)
    os.wait()
"""
PREPARE = """
from optbench.compiling.kernel_table import are_compiled, prepare
print(are_compiled(["end_of_run"]), prepare(["end_of_run"]) > 0, prepare(["end_of_run"]))
"""


def start(code: str, *words: str, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **variables}
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def said(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


@pytest.mark.parametrize("solvers", [OWN[::4], pytest.param(OWN, marks=pytest.mark.slow)])
def test_solvers_have_their_compiled_code_before_the_clock_starts(solvers: list[str]) -> None:
    prepare(KERNELS)
    told = [json.loads(line) for line in said(start(LATE, json.dumps(solvers))).splitlines()]
    assert [name for name, _, _ in told] == solvers
    assert {name: late for name, _, late in told if late} == {}
    assert [name for name, ran, _ in told if not ran] == []


def test_processes_fill_the_cache_at_once(tmp_path: Path) -> None:
    both = [start(PREPARE, OPTBENCH_CACHE=str(tmp_path)) for _ in range(2)]
    first, second = (said(process).split() for process in both)
    assert first[2] == second[2] == "0.0"
    assert said(start(PREPARE, OPTBENCH_CACHE=str(tmp_path))) == "True False 0.0"
    assert not list(tmp_path.rglob(".*"))  # no temporary file is left


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    process = start(PREPARE, OPTBENCH_CACHE=str(file / "beneath"))
    assert said(process) == "False True 0.0"


@pytest.mark.parametrize("name", OWN)
def test_what_a_solver_needs_is_in_the_table(name: str) -> None:
    needs = kernels_of(name)
    assert needs, "a solver without compiled code says so by leaving this list"
    assert needs <= set(KERNELS)


def test_an_unknown_kernel_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="kernel 'rule'"):
        prepare(["rule"])


def test_what_a_study_needs_is_known_without_its_instances() -> None:
    assert _needed(["random_rules"], ["jobshop"]) == {"sampling", "deductions"}
    assert "routes" in _needed(["drift_penalty"], []) and "sampling" not in _needed(
        ["drift_penalty"], []
    )


def test_a_module_is_known_by_what_it_calls() -> None:
    assert kernels_used_by(["optbench.sim.rules", "numpy"]) == {"rules"}


class Warmed(ob.Solver):
    """Has code of its own to load."""

    supports = frozenset({"precedence", "modes", "multi_resource", "pooled"})

    def __init__(self) -> None:
        self.done: list[str] = []

    def warm_up(self, instance: ob.Instance) -> None:
        self.done.append("warm")

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        self.done.append("solve")
        return None


def test_a_plugin_loads_its_own_code_before_the_clock() -> None:
    solver = Warmed()
    result = ob.solve("jobshop:jobs=2,machines=2", solver, time_limit_s=1.0, bound=False)
    assert solver.done == ["warm", "solve"]
    assert result.compile_s == 0.0


def test_only_what_an_instance_needs_is_prepared() -> None:
    shop = load_target("jobshop:jobs=2,machines=2")
    cpsat = load_class("solver", "cpsat")()
    assert "shop_search" in cpsat.kernels(shop) and "project_search" not in cpsat.kernels(shop)
    assert load_compiled_code(cpsat, shop, bounding=True) >= 0.0
    assert are_compiled(cpsat.kernels(shop))
