"""How results, instances, models, fronts and simulations are shown, and what they write."""

from __future__ import annotations

import json
import os
import pickle
import stat
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import optbench as ob
from optbench.errors import ModelError, OptbenchError, ParameterError
from optbench.fronts.front_page import render_front
from optbench.html import schedule_page
from optbench.model.files.result_json import result_to_dict
from optbench.model.files.schedule_json import read_schedule
from optbench.model.result import Infeasibility
from optbench.rendering import RENDERERS, Rendered, RenderedInstance, ShortRepr, renderer
from optbench.shapes.protocol.shaped_instance import ShapedInstance
from optbench.simulation import Simulation
from tests.html.html_pages import outline
from tests.html.shown_objects import solved, three_points, two_jobs

ALL_PURPOSES = {"line", "fragment", "page", "files"}


@pytest.fixture(name="result")
def result_fixture() -> ob.Result:
    return solved()


@pytest.fixture(name="front")
def front_fixture() -> ob.Front:
    return three_points()


# --- the table of renderers ---


def test_every_string_names_a_function() -> None:
    for kind, purposes in RENDERERS.items():
        assert "line" in purposes and set(purposes) <= ALL_PURPOSES
        for purpose, text in purposes.items():
            module, _, name = text.partition(":")
            assert renderer(kind, purpose) is getattr(import_module(module), name)
            assert callable(renderer(kind, purpose))


SHOWN: tuple[type[ShortRepr], ...] = (
    *(ob.Result, ob.Instance, ob.Model, ob.Front),
    *(Simulation, ob.ProcessSimulation, ShapedInstance),
)


def test_every_row_of_the_table_has_its_class() -> None:
    assert {cls.kind_shown for cls in SHOWN} == set(RENDERERS)
    for cls in SHOWN:
        purposes = ALL_PURPOSES if issubclass(cls, Rendered) else {"line"}
        assert set(RENDERERS[cls.kind_shown]) == purposes


# --- reprs ---


def test_a_result_is_one_line(result: ob.Result) -> None:
    assert repr(result) == (
        "<Result 'two jobs' by fcfs: optimal, energy_j = 1,000 J, bound 1,000 J, gap 0 %, "
        "verified, 250 ms>"
    )


def test_a_result_states_status_reason_and_gap(result: ob.Result) -> None:
    stopped = replace(result, status="feasible", termination="time_limit", wall_s=12.34)
    shown = repr(replace(stopped, bound=750.0, gap=0.25))
    assert "by fcfs: feasible, time limit, energy_j = 1,000 J, bound 750 J, gap 25.0 %" in shown
    assert shown.endswith("verified, 12.3 s>")


def test_a_result_without_a_schedule_or_an_instance(result: ob.Result) -> None:
    nothing = replace(result, objective=None, gap=None, verified=False, schedule=None)
    claim = Infeasibility("fluid_lp", "exact-lp")
    none = replace(nothing, bound=None, status="infeasible", infeasibility=claim)
    assert repr(none) == "<Result 'two jobs' by fcfs: infeasible, 250 ms>"
    refused = replace(nothing, bound=None, status="unknown", violations=("late", "twice"))
    assert "unknown, refused by the verifier (2 violations), 250 ms>" in repr(refused)
    without = repr(replace(result, instance_data=None))
    assert "optimal, objective = 1,000, bound 1,000, gap 0 %" in without


def test_levels_of_a_result_stand_side_by_side() -> None:
    m = two_jobs()
    m.minimize_in_order("makespan_s", {"energy_j": 2.0})
    shown = repr(ob.solve(m.build(), "cpsat", time_limit_s=5))
    assert "optimal, makespan_s = 5 s then 2 energy_j = 2,000, bound 5 s then 2,000" in shown
    assert "gap 0 % then 0 %, verified" in shown


def test_an_instance_is_one_line() -> None:
    assert repr(two_jobs().build()) == (
        "<Instance 'two jobs': 2 tasks, 1 precedence, 1 device in 1 pool, minimise energy_j>"
    )


def test_a_model_shows_what_is_declared_so_far() -> None:
    m = ob.Model("growing")
    assert repr(m) == (
        "<Model 'growing': 0 tasks, 0 precedences, 0 devices in 0 pools, no objective yet>"
    )
    big, small = m.pool("big", count=3), m.pool("small", count=2)
    m.link(big, small, both=False)
    m.limit(power_w=900.0, energy_j=1e6)
    m.tariff(price_usd_per_kwh=0.2)
    m.minimize(makespan_s=1.0)
    assert repr(m) == (
        "<Model 'growing': 0 tasks, 0 precedences, 5 devices in 2 pools, 1 link, 2 limits, "
        "1 tariff, minimise makespan_s>"
    )


def test_a_class_of_the_user_is_shown_like_its_base() -> None:
    class Fleet(ob.Model):
        pass

    assert repr(Fleet("mine")).startswith("<Model 'mine': 0 tasks")


def test_a_front_states_its_ranges_and_what_is_proven(front: ob.Front) -> None:
    assert repr(front) == (
        "<Front of 'three modes' by cpsat: 3 points, makespan_s 10 to 20 s, energy_j 20 to 120 J, "
        f"3 proven optimal, {100 * front.undecided_share:.3g} % undecided, no schedule below 20 J>"
    )
    none = replace(front, points=(), infeasible=True, termination="interrupted")
    assert "0 points, proven infeasible, no schedule below 20 J, interrupted>" in repr(none)


def test_a_simulation_is_one_line() -> None:
    done = ob.simulate(two_jobs().build(), "fcfs")
    assert isinstance(done, Simulation)
    assert repr(done) == (
        "<Simulation 'two jobs' by fcfs: complete at 5 s, 2 of 2 tasks completed, "
        "energy_j = 1,000 J, bound 1,000 J, gap 0 %, verified>"
    )
    # After 4 s of 5 s task a and half of task b are done; 600 + 200 J.
    cut = ob.simulate(two_jobs().build(), "fcfs", horizon_s=4)
    assert "horizon at 4 s, 1 of 2 tasks completed, energy 800 J, verified>" in repr(cut)


# --- files ---


def test_a_result_is_saved_with_its_schedule(result: ob.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "run.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "run.schedule.json"]
    document = json.loads((tmp_path / "run.json").read_text())
    assert document == json.loads(
        json.dumps(result_to_dict(replace(result, schedule_file="run.schedule.json")))
    )
    assert "instance_data" not in document and list(document)[:2] == ["format", "version"]
    instance = result.instance_data
    assert instance is not None
    schedule = read_schedule(tmp_path / document["schedule_file"], instance)
    assert ob.verify(instance, schedule).objective == document["objective"] == 1000.0


def test_a_result_without_its_instance_is_saved_all_the_same(
    result: ob.Result, tmp_path: Path
) -> None:
    result.save(tmp_path / "with.json")
    replace(result, instance_data=None).save(tmp_path / "without.json")
    texts = [(tmp_path / f"{name}.schedule.json").read_text() for name in ("with", "without")]
    assert texts[0] == texts[1]
    replace(result, schedule=None).save(tmp_path / "none.json")
    assert json.loads((tmp_path / "none.json").read_text())["schedule_file"] is None
    assert not (tmp_path / "none.schedule.json").exists()


def test_pages_are_those_of_the_command_line(
    result: ob.Result, front: ob.Front, tmp_path: Path
) -> None:
    instance = result.instance_data
    assert instance is not None
    result.html(tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text() == schedule_page.render(
        instance, [result], explained=[None]
    )
    front.html(str(tmp_path / "front.html"))
    assert (tmp_path / "front.html").read_text() == render_front(front)
    front.save(tmp_path / "front.json")
    assert json.loads((tmp_path / "front.json").read_text()) == json.loads(
        json.dumps(front.to_dict())
    )


def test_instances_and_models_are_saved_and_read_back(tmp_path: Path) -> None:
    m = two_jobs()
    instance = m.build()
    things: tuple[RenderedInstance, ...] = (m, instance)
    for k, thing in enumerate(things):
        thing.save(tmp_path / f"{k}.json")
        assert ob.load(tmp_path / f"{k}.json").hash == instance.hash
        thing.html(tmp_path / f"{k}.html")
        outline((tmp_path / f"{k}.html").read_text().replace("<!doctype html>", ""))
    assert (tmp_path / "0.html").read_text() == (tmp_path / "1.html").read_text()


def test_other_formats_are_written_by_name(tmp_path: Path) -> None:
    shop = ob.Model("shop")
    machine = shop.pool("m0")
    shop.task("j0.0", modes=[shop.mode(machine, 3)])
    shop.minimize(makespan=1.0)
    instance = shop.build()
    instance.save(tmp_path / "shop.txt", format="jobshop")
    assert ob.load(tmp_path / "shop.txt", format="jobshop").num_tasks == 1
    with pytest.raises(OptbenchError, match="unknown format 'jobshp'; did you mean 'jobshop'"):
        instance.save(tmp_path / "no.txt", format="jobshp")
    with pytest.raises(OptbenchError, match="'sacct' can be read but not written"):
        instance.save(tmp_path / "no.txt", format="sacct")
    assert not (tmp_path / "no.txt").exists()


def test_an_unfinished_model_writes_nothing(tmp_path: Path) -> None:
    for write in (ob.Model("empty").save, ob.Model("empty").html):
        with pytest.raises(ModelError):
            write(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["save", "html"])
def test_paths_that_cannot_be_files_are_refused(
    result: ob.Result, tmp_path: Path, verb: str
) -> None:
    write = getattr(result, verb)
    with pytest.raises(ParameterError, match="is a folder; give the path of a file"):
        write(tmp_path)
    with pytest.raises(ParameterError, match=r"there is no folder .*missing'; make it first"):
        write(tmp_path / "missing" / "run")
    with pytest.raises(ParameterError, match="the path is 5; give the path of a file"):
        write(5)
    with pytest.raises(ParameterError, match="cannot be written: File name too long"):
        write(tmp_path / ("x" * 300))
    assert list(tmp_path.iterdir()) == []


def test_the_schedule_needs_a_path_too(result: ob.Result, tmp_path: Path) -> None:
    (tmp_path / "run.schedule.json").mkdir()
    with pytest.raises(ParameterError, match=r"run.schedule.json' is a folder"):
        result.save(tmp_path / "run.json")
    assert not (tmp_path / "run.json").exists()


def test_data_is_not_saved_as_a_page(result: ob.Result, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"run.html'\) writes the page"):
        result.save(tmp_path / "run.html")
    with pytest.raises(ParameterError, match=r"has no instance to draw.*instance_data=instance"):
        replace(result, instance_data=None).html(tmp_path / "run.html")
    assert list(tmp_path.iterdir()) == []


def test_files_are_replaced_whole(
    result: ob.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, old = tmp_path / "run.html", "what stood there before"
    page.write_text(old)

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", full)
        with pytest.raises(ParameterError, match="cannot be written: No space left on device"):
            result.html(page)
    assert page.read_text() == old and list(tmp_path.iterdir()) == [page]
    result.html(page)
    assert page.read_text().startswith("<!doctype html>")


def test_a_pipe_is_written_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        two_jobs().save(pipe)
        assert json.loads(os.read(reader, 1 << 16))["format"] == "optbench-instance"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


# --- the instance of a result ---


def test_the_instance_is_no_part_of_comparisons_and_documents(result: ob.Result) -> None:
    bare = replace(result, instance_data=None)
    assert bare == result
    assert result_to_dict(bare) == result_to_dict(result)


def test_a_pickled_result_keeps_its_pictures(result: ob.Result) -> None:
    again = pickle.loads(pickle.dumps(result))
    assert repr(again) == repr(result)
    assert again._repr_html_() == result._repr_html_()
