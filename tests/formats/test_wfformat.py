"""WfFormat: what becomes of tasks, files, machines and power, in both layouts, and what the report
says of the rest.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optbench.errors import FileFormatError, ModelError
from optbench.formats import wfformat
from optbench.formats.format_registry import parse_import
from optbench.formats.imported import Import, ImportOptions
from optbench.model.task_progress import segment_energy_j
from optbench.model.validate import validate
from optbench.model.verify import verify
from optbench.power.profiles import profile
from tests.sample_files.sample_records import workflow

Data = dict[str, Any]


def imported(
    change: Callable[[Data, Data], None] | None = None, options: ImportOptions | None = None
) -> Import:
    """The workflow by hand, after a change to its specification and execution."""
    data = copy.deepcopy(workflow())
    if change is not None:
        change(data["workflow"]["specification"], data["workflow"]["execution"])
    return parse_import(json.dumps(data), "by hand", options=options)


def found(result: Import, section: str, what: str) -> tuple[int, tuple[str, ...]]:
    rows = [finding for finding in getattr(result.report, section) if what in finding.what]
    assert len(rows) == 1, (what, getattr(result.report, section))
    return rows[0].count, rows[0].examples


def test_the_workflow_by_hand() -> None:
    """n1 runs at 3 GHz and n2 at 2 GHz: what was recorded on n1 takes 1.5 times as long on n2, and
    the reverse.
    """
    result = imported()
    instance, schedule = validate(result.instance), result.schedule
    assert instance.tasks.names == ("split_1", "left_1", "right_1", "merge_1")
    assert list(zip(instance.edges.source.tolist(), instance.edges.target.tolist())) == [
        (0, 1),
        (0, 2),
        (1, 3),
        (2, 3),
    ]
    assert instance.edges.data_gb.tolist() == [1.5, 0.5, 2e-6, 3e-6]
    assert instance.places.names == ("cluster", "n1", "n2") and instance.pools.count.tolist() == [
        8,
        4,
    ]
    pairs = instance.pairs
    assert instance.tick_s == 1e-9
    assert pairs.duration[pairs.task == 0].tolist() == [10_500_000_000, 15_750_000_000]
    # 90.25 s / 1.5 is 60.1666... s, rounded up.
    assert pairs.duration[pairs.task == 2].tolist() == [60_166_666_667, 90_250_000_000]
    # 12.5 W per requested core, on 10.5, 60, 90.25 and 5 s.
    energy = [12.5 * 10.5, 12.5 * 4 * 60, 12.5 * 2.5 * 90.25, 12.5 * 5]
    assert schedule is not None
    assert segment_energy_j(instance, schedule).tolist() == pytest.approx(energy)
    assert instance.modes.devices[schedule.mode].tolist() == [1, 4, 3, 1], "2.5 cores are 3"
    verdict = verify(instance, schedule)
    assert verdict.feasible and schedule.start.tolist() == [t * 10**9 for t in (0, 12, 12, 110)]
    assert (
        verdict.metrics["makespan_s"] == pytest.approx(115)
        and result.report.read["recorded_makespan_s"] == 115
    )
    assert instance.objective.label == "energy_j + 50 makespan_s"
    assert found(result, "dropped", "input files that no task writes") == (1, ("'in.txt'",))


def test_energy_in_kwh_wins_over_power() -> None:
    def change(_: Data, execution: Data) -> None:
        execution["tasks"][1]["energyInKWh"] = 0.01

    result = imported(change)
    assert result.schedule is not None
    assert segment_energy_j(result.instance, result.schedule)[1] == pytest.approx(36_000)


def flat(version: str) -> Data:
    """The same workflow as versions 1.3 and 1.4 say it: one list of tasks, references by name."""
    old = workflow()
    specification, execution = old["workflow"]["specification"], old["workflow"]["execution"]
    runs = {row["id"]: row for row in execution["tasks"]}
    sizes = {row["id"]: row["sizeInBytes"] for row in specification["files"]}
    runtime, size = ("runtime", "size") if version == "1.3" else ("runtimeInSeconds", "sizeInBytes")
    tasks = []
    for row in specification["tasks"]:
        run = runs[row["id"]]
        links = [("input", name) for name in row["inputFiles"]] + [
            ("output", name) for name in row["outputFiles"]
        ]
        tasks.append(
            {
                "name": row["name"],
                "id": row["id"],
                "parents": [parent.removesuffix("_1") for parent in row["parents"]],
                runtime: run["runtimeInSeconds"],
                "cores": run["coreCount"],
                "avgPower": run["avgPowerInW"],
                "machine": run["machines"][0],
                "executedAt": run["executedAt"],
                "files": [{"link": link, "name": name, size: sizes[name]} for link, name in links],
            }
        )
    machines = [
        {
            "nodeName": row["nodeName"],
            "cpu": {"count": row["cpu"]["coreCount"], "speed": row["cpu"]["speedInMHz"]},
        }
        for row in execution["machines"]
    ]
    return {
        "name": "old",
        "schemaVersion": version,
        "workflow": {"tasks": tasks, "machines": machines},
    }


@pytest.mark.parametrize("version", ["1.3", "1.4"])
def test_older_layouts_say_the_same(version: str) -> None:
    result = parse_import(json.dumps(flat(version)), "by hand")
    assert result.instance.hash == imported().instance.hash
    assert result.schedule is not None and not result.report.warnings


def test_without_starts_there_is_no_schedule_on_record() -> None:
    def change(_: Data, execution: Data) -> None:
        del execution["tasks"][2]["executedAt"]

    result = imported(change)
    assert result.schedule is None
    assert found(result, "warnings", "without executedAt: there is no recorded schedule") == (
        1,
        ("'right_1'",),
    )
    assert result.instance.hash == imported().instance.hash


def test_a_time_that_is_none_is_named() -> None:
    def change(_: Data, execution: Data) -> None:
        execution["tasks"][0]["executedAt"] = "05-04-23T10:46:27Z"

    result = imported(change)
    where = "workflow.execution.tasks[0]: '05-04-23T10:46:27Z'"
    assert found(result, "warnings", "executedAt that is no ISO 8601 time") == (1, (where,))
    assert result.schedule is None


def test_a_record_that_breaks_a_constraint_is_reported() -> None:
    """Merge starts at 60 s, when the left branch has 12 s to go and the right one 42.25 s."""

    def change(_: Data, execution: Data) -> None:
        execution["tasks"][3]["executedAt"] = "2026-01-01T00:01:00Z"

    result = imported(change)
    count, examples = found(result, "warnings", "the schedule on record breaks precedence")
    assert count == 2 and "merge_1 starts at 60" in examples[0]


def test_times_of_writing_are_no_start_times() -> None:
    """Published files have them, a millisecond apart: they would say that all machines have a core
    per task.
    """

    def change(_: Data, execution: Data) -> None:
        del execution["machines"]
        for i, row in enumerate(execution["tasks"]):
            row["executedAt"] = f"2026-01-01T00:00:00.00{i}Z"
            row["machines"], row["coreCount"] = ["n1"], 1

    result = imported(change)
    assert result.schedule is None
    words = "before the end of its parent in 4 of 4 dependencies: these are not start times"
    assert found(result, "warnings", words)[0] == 1
    assert result.instance.pools.count.tolist() == [wfformat.DEFAULT_CORES]


def test_machines_of_unknown_size() -> None:
    """Both branches overlap on the one machine that the tasks name: 4 + 3 cores, and a rate that
    nothing is known of.
    """

    def change(_: Data, execution: Data) -> None:
        del execution["machines"]
        for row in execution["tasks"]:
            row["machines"] = ["n1"]

    result = imported(change)
    assert result.instance.pools.count.tolist() == [7]
    assert found(result, "assumed", "machines that only tasks name") == (1, ("'n1'",))
    assert found(result, "assumed", "machines without coreCount") == (1, ("'n1': 7 cores",))
    assert result.schedule is not None and verify(result.instance, result.schedule).feasible


def test_a_file_without_machines_has_one() -> None:
    def change(_: Data, execution: Data) -> None:
        del execution["machines"]
        for row in execution["tasks"]:
            del row["machines"], row["coreCount"], row["avgPowerInW"], row["executedAt"]

    result = imported(change)
    assert result.instance.pools.names == ("machine",) and result.instance.pools.count.tolist() == [
        wfformat.DEFAULT_CORES
    ]
    assert result.instance.objective.label == "makespan_s"
    assert found(result, "assumed", "one core")[0] == 4
    sized = imported(change, ImportOptions(counts={"machine": 3}))
    assert sized.instance.pools.count.tolist() == [3]


def test_a_task_larger_than_its_machine_gets_all_of_it() -> None:
    def change(_: Data, execution: Data) -> None:
        execution["tasks"][2]["coreCount"] = 6  # on n2, which has 4

    result = imported(change)
    assert found(result, "warnings", "more cores than their machine") == (1, ("'right_1': 6 of 4",))
    rows = result.instance.pairs.mode[result.instance.pairs.task == 2]
    assert result.instance.modes.primary[rows].tolist() == [1] and result.instance.modes.devices[
        rows
    ].tolist() == [4]


def test_a_profile_adds_clocks_and_resting_power() -> None:
    """A machine is one device: 2 of 8 cores draw a quarter of it, and what was recorded scales as
    the law does.
    """

    def change(_: Data, execution: Data) -> None:
        execution["tasks"][0]["coreCount"] = 2
        del execution["tasks"][0]["avgPowerInW"]

    cpu = profile("CPU")
    result = imported(change, ImportOptions(profiles={"machine": "CPU"}))
    instance, modes = result.instance, result.instance.modes
    assert instance.pools.idle_w.tolist() == [cpu.idle_w / 8, cpu.idle_w / 4]
    rows = instance.pairs.mode[instance.pairs.task == 0][: len(cpu.clocks)]
    assert modes.clock[rows].tolist() == list(cpu.clocks)
    law = cpu.law("training")
    assert modes.power_w[rows].tolist() == pytest.approx(
        [law.power_w(1, f) * 2 / 8 for f in cpu.clocks]
    )
    ratio = [law.time_per_unit_s(1, f) / law.time_per_unit_s(1, 1.0) for f in cpu.clocks]
    assert modes.time_per_unit_s[rows].tolist() == pytest.approx(ratio)
    left = instance.pairs.mode[instance.pairs.task == 1][: len(cpu.clocks)]
    assert modes.power_w[left].tolist() == pytest.approx(
        [50 * law.power_w(1, f) / law.power_w(1, 1.0) for f in cpu.clocks]
    )
    assert result.schedule is not None and verify(instance, result.schedule).feasible
    assert modes.clock[result.schedule.mode].tolist() == [1.0] * 4


def test_what_is_missing_or_odd_is_counted() -> None:
    def change(specification: Data, execution: Data) -> None:
        specification["tasks"][3]["parents"] += ["ghost", "merge_1"]
        specification["tasks"][0]["children"] = ["left_1"]
        specification["files"] = [row for row in specification["files"] if row["id"] != "a.bin"]
        specification["tasks"][3]["inputFiles"].append("b.bin")
        specification["tasks"][2]["inputFiles"].remove("b.bin")
        del execution["tasks"][3]
        execution["tasks"] += [{"id": "ghost", "runtimeInSeconds": 1}, execution["tasks"][0]]

    result = imported(change)
    assert found(result, "dropped", "tasks that are not there") == (1, ("'merge_1': 'ghost'",))
    assert found(result, "dropped", "of a task on itself")[0] == 1
    assert (
        found(result, "dropped", "executions of tasks that the specification does not have")[0] == 1
    )
    assert found(result, "dropped", "further executions")[0] == 1
    assert found(result, "warnings", "only one of the two tasks lists") == (
        1,
        ("'split_1' -> 'right_1'",),
    )
    assert found(result, "warnings", "pass between tasks without a dependency") == (1, ("'b.bin'",))
    assert found(result, "assumed", "files without a size are empty") == (1, ("'a.bin'",))
    assert found(result, "assumed", "tasks without a runtime take no time") == (1, ("'merge_1'",))
    assert result.instance.pairs.duration[result.instance.pairs.task == 3].tolist() == [0, 0]


def test_dependencies_by_files_where_none_are_declared() -> None:
    def change(specification: Data, _: Data) -> None:
        for row in specification["tasks"]:
            row["parents"], row["children"] = [], []

    result = imported(change)
    assert found(result, "assumed", "dependencies by files")[0] == 4
    edges = result.instance.edges
    assert sorted(zip(edges.source.tolist(), edges.target.tolist())) == [
        (0, 1),
        (0, 2),
        (1, 3),
        (2, 3),
    ]
    assert np.sort(edges.data_gb).tolist() == [2e-6, 3e-6, 0.5, 1.5]


def test_tasks_alike_share_a_kind() -> None:
    def change(_: Data, execution: Data) -> None:
        for row in execution["tasks"]:
            row["machines"], row["coreCount"], row["avgPowerInW"] = ["n1"], 1, 10

    assert len(imported(change).instance.modes.kind_names) == 1


def bad(path: str, value: Any) -> str:
    """The workflow by hand with one value changed."""
    data = workflow()
    part: Any = data
    *keys, last = [int(key) if key.isdigit() else key for key in path.split("/")]
    for key in keys:
        part = part[key]
    part[last] = value
    return json.dumps(data)


RUN, TASK = "workflow/execution/tasks/1", "workflow/specification/tasks/1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            bad("workflow/execution", None),
            "workflow.execution is missing or null; it must be an object",
        ),
        (
            bad("workflow/specification", []),
            "workflow.specification is a list of 0; it must be an object",
        ),
        (
            bad("workflow/specification/tasks", []),
            "workflow.specification.tasks is a list of 0; .* at least one object",
        ),
        (
            bad(f"{RUN}/runtimeInSeconds", -3),
            r"execution.tasks\[1\].runtimeInSeconds is -3; it must be a number from 0",
        ),
        (bad(f"{RUN}/runtimeInSeconds", "60"), r"tasks\[1\].runtimeInSeconds is '60'"),
        (bad(f"{RUN}/coreCount", True), r"tasks\[1\].coreCount is true"),
        (bad(f"{RUN}/avgPowerInW", 1e30), r"tasks\[1\].avgPowerInW is 1e\+30"),
        (bad(f"{RUN}/id", ""), r"tasks\[1\].id is ''; it must be a non-empty string"),
        (
            bad(f"{RUN}/machines", "n1"),
            r"tasks\[1\].machines is 'n1'; it must be a list of strings",
        ),
        (
            bad(f"{TASK}/id", "split_1"),
            r"specification.tasks\[1\].id is 'split_1', the id of an earlier task",
        ),
        (
            bad(f"{TASK}/parents", [1]),
            r"specification.tasks\[1\].parents is a list of 1; it must be a list of strings",
        ),
        (
            bad("workflow/specification/files/0/sizeInBytes", None),
            r"files\[0\].sizeInBytes is missing",
        ),
        (bad("workflow", {}), "workflow has neither 'specification'"),
        (bad("workflow/execution/tasks", [{"id": "split_1"}]), "no task has a runtimeInSeconds"),
    ],
)
def test_errors_name_the_place_and_the_value(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        parse_import(text, "x")


def test_a_specification_alone_cannot_be_scheduled() -> None:
    data = workflow()
    del data["workflow"]["execution"]
    with pytest.raises(
        FileFormatError, match=r"workflow\.execution is missing: without run times there is nothing"
    ):
        parse_import(json.dumps(data), "x")


def test_a_cycle_is_refused() -> None:
    result = parse_import(bad("workflow/specification/tasks/0/parents", ["merge_1"]), "x")
    with pytest.raises(ModelError, match=r"cycle: .*'merge_1'"):
        validate(result.instance)


def test_an_unknown_version_is_read_with_a_warning() -> None:
    result = parse_import(bad("schemaVersion", "2.0"), "x")
    assert found(result, "warnings", "schemaVersion '2.0' is not one of 1.0")[0] == 1
