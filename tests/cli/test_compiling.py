"""What a first use compiles is announced, no part of the solver's time, and not compiled again;
``init`` offers to do it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.cli.verbs import init
from tests.cli.conftest import Cli

SOLVE = ("solve", "gpu_dag:tasks=3", "-s", "fcfs", "--time-limit", "1s", "--json")


def test_the_first_use_compiles_before_its_clock(real_cli: Cli, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    first = real_cli(*SOLVE, OPTBENCH_CACHE=cache)
    assert first.err.count("compiling list rules, once per machine") == 1
    assert "compiled in" in first.err
    assert first.json["compile_s"] > first.json["wall_s"]
    again = real_cli(*SOLVE, OPTBENCH_CACHE=cache)
    assert (again.json["compile_s"], again.err.count("compil")) == (0.0, 0)
    assert again.json["objective"] == first.json["objective"]
    assert list(tmp_path.rglob("*.nbc")) == list((tmp_path / "cache" / "kernels").rglob("*.nbc"))


def test_init_compiles_where_that_is_wanted(real_cli: Cli, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    made = real_cli("init", "lab", "--no-compile", "--json", OPTBENCH_CACHE=cache)
    assert made.json["compile_s"] == 0.0
    assert not (tmp_path / "cache").exists()
    # Nobody is at a terminal here, and nobody is asked.
    assert real_cli("init", "lab", OPTBENCH_CACHE=cache).err == ""


@pytest.mark.parametrize(("answer", "wanted"), [("\n", True), ("y\n", True), ("no\n", False)])
def test_the_question(monkeypatch: pytest.MonkeyPatch, answer: str, wanted: bool) -> None:
    class Terminal:
        def readline(self) -> str:
            return answer

    monkeypatch.setattr("sys.stdin", Terminal())
    assert init.ask_to_compile() is wanted


def test_an_unknown_solver_is_refused(cli: Cli) -> None:
    done = cli("compile", "random_rule")
    assert done.code == 2
    assert "did you mean 'random_rules'?" in done.err
