"""assert_gap: what holds passes, what does not says where and how to see it again."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import optbench as ob
from optbench.api import load_target
from optbench.errors import ParameterError, UnknownNameError, UnsupportedError
from optbench.model.files.instance_json import write_instance
from optbench.testing import CASES, assert_gap

# Three tasks on two devices; the optimum is 5, one after the other they end at 9.
TWO_DEVICES = next(case.instance for case in CASES if case.name == "two_devices")
SHOP = "jobshop:jobs=3,machines=3"


@dataclass
class Serial(ob.Solver):
    """One task after the other; from seed ``late`` on it wastes 100 time units at the beginning."""

    supports: ClassVar[frozenset[str]] = frozenset({"pooled", "modes", "precedence", "limits"})
    late: int = 1000

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        length = instance.pairs.duration[instance.pairs.ptr[:-1]]
        start = np.cumsum(length) - length + (100 if run.seed >= self.late else 0)
        return ob.Schedule.of(instance, instance.pairs.mode[instance.pairs.ptr[:-1]], start)


@dataclass
class Failing(Serial):
    """Does what its name of the day says, on seed 1."""

    how: str = "crash"

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        if run.seed == 1:
            if self.how == "crash":
                raise ZeroDivisionError("no such luck")
            if self.how == "boast":
                run.report_bound(1e6, "nowhere")
            if self.how == "nothing":
                return None
            if self.how == "interrupt":
                raise KeyboardInterrupt
        return super().solve(instance, run)


def failure(*words: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_gap(*words, **options)
    return str(caught.value)


def test_an_exact_solver_holds_and_the_check_can_be_asked_further() -> None:
    check = assert_gap("cpsat", SHOP, seeds=3, at_most=0.0, time_limit_s=10)
    assert [cell.seed for cell in check.cells] == [0, 1, 2]
    assert (check.mean, check.upper, check.holds) == (0.0, 0.0, True)
    assert all(result.status == "optimal" for result in check.results)
    assert len({result.instance_hash for result in check.results}) == 3


def test_what_is_called_optimal_has_no_gap() -> None:
    # Energies in thousandths of a joule: CP-SAT's bound is lower by what its scaling may be off.
    check = assert_gap("cpsat", "gpu_dag:tasks=3", seeds=2, at_most=0.0, confidence=None)
    assert any(isinstance(result.gap, float) and result.gap > 0 for result in check.results)
    for result in check.results:
        assert_gap(result, 0.0)


def test_confidence_asks_more_than_the_mean() -> None:
    # Gap of a serial schedule of n jobs is well below 1 and differs by instance: the mean is
    # within, its limit is not.
    loose = assert_gap(Serial(), [SHOP], seeds=5, at_most=1.0)
    assert loose.upper is not None and loose.upper > loose.mean
    between = (loose.mean + loose.upper) / 2
    text = failure(Serial(), [SHOP], seeds=5, at_most=between)
    assert f"mean gap {100 * loose.mean:.3g} %" in text
    assert f"with 95 % confidence it is at most {100 * loose.upper:.3g} %" in text


def test_without_confidence_every_cell_must_be_within() -> None:
    check = assert_gap(Serial(), SHOP, seeds=[4, 7], at_most=1.0, confidence=None)
    assert check.upper is None
    largest = max(cell.gap for cell in check.cells)
    assert_gap(Serial(), SHOP, seeds=[4, 7], at_most=largest, confidence=None)
    assert "1 of them above" in failure(
        Serial(), SHOP, seeds=[4, 7], at_most=(largest + check.mean) / 2, confidence=None
    )


def test_seeds_on_one_instance_are_averaged_before_instances_are_compared() -> None:
    # Seeds 0 and 1 waste nothing (gap 4/9), seeds 2 and 3 do: 109 against 5.
    late = 1 - 5 / 109
    check = assert_gap(Serial(late=2), TWO_DEVICES, seeds=4, at_most=1.0, confidence=0.5)
    assert [cell.gap for cell in check.cells] == pytest.approx([4 / 9, 4 / 9, late, late])
    other = TWO_DEVICES.with_limits(makespan=1e6)
    check = assert_gap(Serial(late=2), [TWO_DEVICES, other], seeds=4, at_most=1.0, confidence=0.9)
    # Two instances with the same mean: four of each are no eight values.
    assert check.upper == pytest.approx(check.mean)


def test_a_missing_gap_counts_as_one() -> None:
    text = failure(Failing(how="nothing"), TWO_DEVICES, seeds=2, at_most=0.6)
    # (4/9 + 1) / 2.
    assert "mean gap 72.2 %, 1 without a gap (each counts as 1)" in text
    assert "two devices, seed 1: no gap, objective None" in text


def test_a_crash_fails_whatever_the_mean_and_shows_where() -> None:
    text = failure(Failing(how="crash"), TWO_DEVICES, seeds=4, at_most=1.0)
    assert "1 crashed or contradicted the verifier" in text
    assert (
        "ZeroDivisionError: no such luck" in text
        and 'raise ZeroDivisionError("no such luck")' in text
    )
    assert text.index("seed 1:") < text.index("seed 0:")


def test_a_contradiction_is_shown() -> None:
    text = failure(Failing(how="boast"), TWO_DEVICES, seeds=3, at_most=1.0, confidence=None)
    assert "contradiction: " in text and "bound 1000000.0 from nowhere exceeds" in text


def test_ctrl_c_ends_the_test() -> None:
    with pytest.raises(KeyboardInterrupt):
        assert_gap(Failing(how="interrupt"), TWO_DEVICES, seeds=3, at_most=1.0)


def test_the_worst_level_of_an_order_counts() -> None:
    ordered = TWO_DEVICES.with_objective(ob.Objective.in_order("makespan", "makespan_s"))
    check = assert_gap(Serial(), ordered, seeds=1, at_most=0.5, confidence=None)
    (cell,) = check.cells
    assert (
        cell.result is not None
        and isinstance(cell.result.gap, tuple)
        and cell.gap == max(cell.result.gap)
    )


def test_the_command_of_a_cell_repeats_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    instance = load_target(SHOP, 3)
    options: dict[str, Any] = {
        "seeds": [5],
        "at_most": -1.0,
        "confidence": None,
        "work_limit": 40,
        "params": {"k": 16},
    }
    for target in (SHOP, instance):
        text = failure("random_rules", target, **options)
        (command,) = re.findall(r"optbench solve .*", text)
        objective = float(re.findall(r"objective ([\d.]+)", text)[0])
        words = [sys.executable, "-m", "optbench.cli.main", *shlex.split(command)[1:], "--json"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
        assert f'"objective": {objective}' in done.stdout


def test_the_call_of_a_solver_that_is_an_object_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for target in (SHOP, load_target(SHOP, 2), "two_pools_of_nobody.json"):
        if target == "two_pools_of_nobody.json":
            monkeypatch.chdir(tmp_path)
            write_instance(TWO_DEVICES, Path(target))
        text = failure(
            Serial(late=3), target, seeds=[2], at_most=0.0, confidence=None, work_limit=7
        )
        (call,) = re.findall(r"ob\.solve\(.*\)", text)
        assert "time_limit_s=None, work_limit=7, seed=2, threads=1" in call
        result = eval(call, {"ob": ob, "Serial": Serial})
        assert result.objective == float(re.findall(r"objective ([\d.]+)", text)[0])


def test_the_same_cell_twice_is_one() -> None:
    with pytest.raises(ParameterError, match="one cell gives no confidence limit"):
        assert_gap(Serial(), TWO_DEVICES, seeds=[3, 3], at_most=0.5)
    check = assert_gap(Serial(), [TWO_DEVICES, TWO_DEVICES], seeds=[3, 4, 3], at_most=0.5)
    assert [cell.seed for cell in check.cells] == [3, 4]


@pytest.mark.parametrize("at_most", [5, float("nan"), "5%", True])
def test_what_is_no_share_is_refused(at_most: Any) -> None:
    with pytest.raises(ParameterError, match=re.escape(f"at_most is {at_most!r}")):
        assert_gap(Serial(), TWO_DEVICES, at_most=at_most)
    with pytest.raises(ParameterError, match=re.escape(f"at_most is {at_most!r}")):
        assert_gap(ob.solve(TWO_DEVICES, Serial()), at_most)


def test_a_result_fails_without_asserts_too() -> None:
    code = (
        "import optbench as ob; from optbench.testing import assert_gap\n"
        "result = ob.solve('jobshop:jobs=3,machines=3', 'fcfs')\n"
        "try:\n    assert_gap(result, -1.0)\nexcept AssertionError: print('failed')"
    )
    done = subprocess.run(
        [sys.executable, "-O", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "failed\n"


def test_a_result_of_a_crash_fails() -> None:
    @dataclass
    class Falls(Serial):
        def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
            schedule = super().solve(instance, run)
            assert schedule is not None
            run.report(schedule)
            raise ZeroDivisionError("no such luck")

    result = ob.solve(TWO_DEVICES, Falls())
    assert result.verified and result.gap is not None
    with pytest.raises(
        AssertionError, match=r"falls on two devices, seed 0: crashed .*no such luck"
    ):
        assert_gap(result, 1.0)


def test_mistakes_are_no_failed_gates() -> None:
    with pytest.raises(UnknownNameError, match="'cpsad'"):
        assert_gap("cpsad", SHOP, at_most=0.1)
    with pytest.raises(UnsupportedError, match="solver 'serial' cannot run"):
        assert_gap(Serial(), "gpu_dag:tasks=4", at_most=0.1)
    with pytest.raises(ParameterError, match=r"confidence is 95"):
        assert_gap("cpsat", SHOP, at_most=0.1, confidence=95)
    with pytest.raises(ParameterError, match="one cell gives no confidence limit"):
        assert_gap("cpsat", SHOP, at_most=0.1, seeds=1)
    with pytest.raises(ParameterError, match="seeds is 0"):
        assert_gap("cpsat", SHOP, at_most=0.1, seeds=0)
    with pytest.raises(ParameterError, match="needs both"):
        assert_gap("cpsat", SHOP)  # type: ignore[call-overload]
    with pytest.raises(ParameterError, match=r"3\.5 is not a target"):
        assert_gap("cpsat", [3.5], at_most=0.1)  # type: ignore[list-item]


def test_a_result_alone() -> None:
    result = ob.solve(TWO_DEVICES, Serial(), time_limit_s=5)
    assert_gap(result, 0.45)
    assert_gap(result, at_most=0.45)
    with pytest.raises(AssertionError, match=r"gap 0\.44"):
        assert_gap(result, 0.4)
    with pytest.raises(ParameterError, match="at_most is None"):
        assert_gap(result)  # type: ignore[call-overload]
