"""The command of a cell is read by the command line as the cell that it is of."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from optbench.cli.main import build_parser
from optbench.plugins import specs
from optbench.plugins.discovery import load_class, load_solver
from optbench.run.repeat_command import command_of, failure_command
from optbench.store.records import Reason
from optbench.study.declared import CellBudget
from tests.run.study_parts import cell_of, instance_of

CELL = cell_of(instance_of(), "random_rules")


def defaults(solver: str) -> dict[str, object]:
    return specs.values_of(load_class("solver", solver)())


def test_a_solve_as_a_command() -> None:
    cell = replace(
        CELL, params=defaults("random_rules"), budget=CellBudget(time_limit_s=2.5, threads=2)
    )
    words = (
        "optbench solve jobshop:jobs=3,machines=3 -s random_rules --seed 0 --time-limit 2.5s "
        "--threads 2"
    )
    assert command_of(cell) == words


def test_everything_that_decides_a_solve_survives_the_shell() -> None:
    params = {**defaults("random_rules"), "k": 7}
    budget = CellBudget(None, 1234.5, 1)
    cell = replace(
        CELL,
        target="my jobs/ft 'x'.txt",
        params=params,
        seed=9,
        instance_seed=4,
        budget=budget,
        repetition=1,
    )
    parser, _ = build_parser()
    args = parser.parse_args(shlex.split(command_of(cell))[1:])
    assert (args.target, args.seed, args.instance_seed) == ("my jobs/ft 'x'.txt", 9, 4)
    assert (args.time_limit, args.work_limit, args.threads) == (None, 1234.5, 1)
    assert (
        specs.values_of(load_solver(args.solver, dict(args.param))[1]) == params
        and len(args.param) == 1
    )


def test_a_bounding_as_a_command() -> None:
    cell = cell_of(instance_of(), "bounds", kind="bound", budget=CellBudget(time_limit_s=1.0))
    assert command_of(cell) == "optbench bound jobshop:jobs=3,machines=3 --seed 0 --time-limit 1s"


def test_a_solver_that_is_gone_is_repeated_with_all_its_parameters() -> None:
    assert "-s gone -p depth=3" in command_of(replace(CELL, solver="gone", params={"depth": 3}))


@pytest.mark.parametrize("kind", ["time_limit", "memory_limit", "left_processes"])
def test_what_a_limit_ended_is_repeated_under_it(kind: str) -> None:
    assert (
        failure_command(CELL, Reason(kind, ""), "my study.toml")
        == f"optbench run 'my study.toml' --only {CELL.key[:12]} --force"
    )
    assert failure_command(CELL, Reason("crashed", ""), "night") == command_of(CELL)
