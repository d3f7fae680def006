"""Checkpoints of tasks: what an interrupted segment counts, by hand, in files, in declarations."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ModelError
from optbench.model.content_hash import LATER_COLUMNS
from optbench.model.instance import Instance
from optbench.model.repair import verified_or_repaired
from optbench.model.schedule import Schedule
from optbench.model.streams import with_stream
from optbench.model.validate import validate


def training(*checkpoint_s: float | None, **options: Any) -> Instance:
    """Tasks of 10 s at 100 W on a device of their own; a second mode takes 20 s at 40 W."""
    m = ob.Model("training", **{"preemptive": True, **options})
    gpu = m.pool("gpu", count=max(1, len(checkpoint_s)))
    modes = [m.mode(gpu, time_s=10, energy_j=1000), m.mode(gpu, time_s=20, energy_j=800)]
    for every_s in checkpoint_s:
        m.task(modes=modes, checkpoint_s=every_s)
    m.minimize(energy_j=1.0)
    return m.build()


def pieces(*rows: tuple[int, int, int]) -> Schedule:
    """Segments (mode, start, end) of task 0."""
    mode, start, end = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Schedule(np.zeros(len(mode), dtype=np.int64), mode, start, end)


def broken(instance: Instance, *rows: tuple[int, int, int]) -> list[str]:
    return [each.constraint for each in ob.verify(instance, pieces(*rows)).violations]


def test_what_is_saved_counts_and_what_is_not_is_done_again() -> None:
    """Stopped after 7 s, checkpoints every 3 s: 6 s are saved, 4 s left, and 1 s at 100 W lost."""
    instance = training(3.0)
    found = ob.verify(instance, pieces((0, 0, 7), (0, 8, 12)))
    assert found.feasible and found.metrics["lost_energy_j"] == 100.0
    assert found.metrics["energy_j"] == 1100.0
    assert broken(instance, (0, 0, 7), (0, 8, 11)) == ["assignment"]
    assert broken(instance, (0, 0, 2), (0, 8, 17)) == ["assignment"]
    # Saved is counted from the beginning of each segment: 3 of 5, 3 of 5, and 4 more.
    assert broken(instance, (0, 0, 5), (0, 5, 10), (0, 10, 14)) == []
    assert broken(instance, (0, 0, 5), (0, 5, 10), (0, 10, 13)) == ["assignment"]


def test_a_share_that_is_saved_holds_in_another_mode() -> None:
    """6 of 10 s are saved, and the other 0.4 take 8 of 20 s; 1 s of 100 W is lost."""
    found = ob.verify(training(3.0), pieces((0, 0, 7), (1, 10, 18)))
    assert found.feasible and found.metrics["energy_j"] == 700 + 8 * 40
    assert broken(training(3.0), (0, 0, 7), (1, 10, 17)) == ["assignment"]


def test_without_any_checkpoint_a_task_starts_again() -> None:
    """9 s in vain, then the whole."""
    instance = training(math.inf)
    assert broken(instance, (0, 0, 9), (0, 9, 18)) == ["assignment"]
    found = ob.verify(instance, pieces((0, 0, 9), (0, 9, 19)))
    assert found.feasible and found.metrics["lost_energy_j"] == 900.0
    # The last segment is the one that counts in full: a whole one before it is in vain.
    assert broken(instance, (0, 0, 10), (0, 10, 11)) == ["assignment"]


def test_with_0_everything_counts_as_it_does_without_the_column() -> None:
    kept, plain = training(0.0), training(None)
    assert (
        plain.tasks.checkpoint is None
        and "lost_energy_j" not in ob.verify(plain, pieces((0, 0, 7), (0, 8, 11))).metrics
    )
    for instance in (kept, plain):
        assert broken(instance, (0, 0, 7), (0, 8, 11)) == []
        assert broken(instance, (0, 0, 7), (0, 8, 10)) == ["assignment"]
    assert ob.verify(kept, pieces((0, 0, 7), (0, 8, 11))).metrics["lost_energy_j"] == 0.0
    assert plain.features - kept.features == {"preemption"}
    assert kept.features - plain.features == {"checkpoints"}


def test_seconds_are_rounded_up_to_ticks() -> None:
    """0.25 s are 3 ticks of 0.1 s; a task that names none among others that do keeps everything."""
    made = training(0.25, None, math.inf, tick_s=0.1).tasks.checkpoint
    assert made is not None and made.tolist() == [3.0, 0.0, math.inf]
    m = ob.Model("many", preemptive=True)
    mode = m.mode(m.pool("gpu"), time_s=1)
    m.tasks([1.0, 2.0], modes=[mode], checkpoint_s=[5, math.inf])
    m.minimize(makespan=1.0)
    column = m.build().tasks.checkpoint
    assert column is not None and column.tolist() == [5.0, math.inf]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: training(-1.0), "checkpoint of task 't0' is -1.0; it must be a non-negative"),
        (lambda: training(math.nan), "checkpoint of task 't0' is nan"),
        (lambda: training(3.0, preemptive=False), "'training' is not preemptive; checkpoints need"),
        (
            lambda: validate(with_stream(training(3.0, horizon_s=50), opens=0)),
            "'training' is open; checkpoints need",
        ),
    ],
)
def test_what_is_refused(made: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        made()


def test_a_fraction_of_a_tick_is_refused() -> None:
    made = training(3.0)
    half = replace(made, tasks=replace(made.tasks, checkpoint=np.array([2.5])))
    with pytest.raises(ModelError, match=r"is 2.5; it must be a whole number of ticks"):
        validate(half)


def test_files_hold_them_and_hashes_count_them(tmp_path: Path) -> None:
    path, made = tmp_path / "training.json", training(3.0, math.inf)
    ob.write_instance(made, path)
    back = ob.read_instance(path)
    assert isinstance(back, Instance) and back.hash == made.hash
    assert json.loads(path.read_text())["tasks"]["checkpoint"] == [3, None]
    hashes = {training(*every).hash for every in ((3.0,), (4.0,), (math.inf,), (None,))}
    assert len(hashes) == 4
    ob.write_instance(training(None), path)
    assert not LATER_COLUMNS & {*json.loads(path.read_text())["tasks"]}


def test_a_repair_gives_the_last_segment_what_is_left() -> None:
    """A tick is missing: 6 saved and 3 done of 10."""
    done = verified_or_repaired(
        training(3.0, tick_s=1e-7), pieces((0, 0, 7 * 10**7), (0, 8 * 10**7, 12 * 10**7 - 1))
    )
    assert done.segments_moved == 1 and done.verdict.feasible
    assert int(done.schedule.end[-1]) == 12 * 10**7


def test_solvers_that_start_each_task_once_refuse_them() -> None:
    with pytest.raises(ob.UnsupportedError, match="checkpoints: tasks that keep, of a segment"):
        ob.solve(training(3.0), "cpsat")
    assert ob.solve(training(3.0), "fcfs").objective == 1000.0


def test_published_formats_refuse_them(tmp_path: Path) -> None:
    ob.write_instance(training(3.0), tmp_path / "training.json")
    with pytest.raises(ob.UnsupportedError, match="checkpoints"):
        ob.convert(tmp_path / "training.json", tmp_path / "training.sm", to="psplib")
