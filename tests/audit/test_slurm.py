"""Generated logs are possible: as many runs as asked for, none on a GPU that another has."""

from __future__ import annotations

from optbench.formats.imported import ImportOptions
from optbench.formats.sacct import read
from optbench.model.verify import verify
from tests.audit.slurm import Partition, sacct_log

PARTITIONS = (Partition("a100", 3, 4, 0.5), Partition("v100", 2, 8, 0.5))


def test_a_generated_log_verifies_on_its_nodes() -> None:
    options = ImportOptions(devices_per_node={"a100": 4, "v100": 8}, by_node=True)
    found = read(sacct_log(300, PARTITIONS, steps=True), "log", options)
    assert found.instance.num_tasks == 300 and found.schedule is not None
    assert verify(found.instance, found.schedule).feasible
    assert not found.report.dropped


def test_jobs_wait_where_the_load_is_high() -> None:
    waits = []
    for load in (0.2, 0.9):
        found = read(sacct_log(300, PARTITIONS, load=load), "log", None)
        assert found.schedule is not None
        waits.append(float((found.schedule.start - found.instance.tasks.release).mean()))
    assert waits[0] < waits[1]


def test_a_seed_is_a_log() -> None:
    assert (
        sacct_log(50, PARTITIONS, seed=4)
        == sacct_log(50, PARTITIONS, seed=4)
        != sacct_log(50, PARTITIONS, seed=5)
    )
