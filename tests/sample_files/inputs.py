"""One small valid file in each format, as input to random damage."""

from __future__ import annotations

import numpy as np

from optbench.formats.classical import Project, Shop, project_instance, shop_instance
from optbench.formats.format_registry import FORMATS
from optbench.model.builder import Model
from optbench.model.files.instance_json import instance_to_json
from optbench.model.files.schedule_json import schedule_to_dict
from optbench.model.files.strict_json import render
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule
from optbench.model.streams import outages_in_seconds, with_stream
from tests.sample_files.sample_records import sacct_text, workflow_text


def shop(flexible: bool, num_jobs: int = 4, num_machines: int = 3) -> Instance:
    """A job shop whose machine orders rotate; with a second machine per operation if flexible."""
    jobs = []
    for j in range(num_jobs):
        machines = [(j + o) % num_machines for o in range(num_machines)]
        job = [[(machine, 2 + (3 * j + machine) % 7)] for machine in machines]
        if flexible:
            job = [[*op, ((op[0][0] + 1) % num_machines, 9)] for op in job]
        jobs.append(job)
    return shop_instance(
        Shop(num_machines, jobs), "shop", "flexible_jobshop" if flexible else "jobshop"
    )


def project() -> Instance:
    """Eight activities, of which the first and the last are dummies, on two resources."""
    edges = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (2, 5), (3, 6), (4, 7), (5, 7), (6, 7)]
    needs = [[0, 0], [2, 1], [1, 0], [3, 2], [0, 1], [2, 2], [1, 1], [0, 0]]
    return project_instance(Project([4, 3], [0, 3, 5, 2, 4, 1, 6, 0], needs, edges), "project")


def cluster() -> Instance:
    """GPU tasks that use every key of an instance file."""
    m = Model("cluster", time="ticks", tick_s=0.5, horizon_s=4000)
    site = m.place("site")
    fast = m.pool("fast", count=4, at=site, idle_w=50, sleep_w=5, sleeps=True, memory_gb=40)
    slow = m.pool("slow", count=2, idle_w=20, memory_gb=16)
    m.link(fast, slow, bandwidth_gbit_s=10, latency_ms=2, energy_j_per_gb=30)
    modes = [
        m.mode(fast, 0.25, 80, clock=1.0),
        m.mode({fast: 2, slow: 1}, 0.125, 90, power_w=900),
        m.mode(slow, 0.7, 40),
    ]
    first = m.task("first", units=100, modes=modes, memory_gb=10, weight=2)
    second = m.task(
        "second",
        units=60,
        modes=modes,
        after=first,
        data_gb={first: 3.0},
        deadline_s=900,
        hard=False,
    )
    m.task(
        "third",
        units=30,
        modes=[m.mode(slow, 1.0, 10)],
        after=[first, second],
        release_s=20,
        deadline_s=3000,
        hard=True,
    )
    m.limit(power_w=5000, at=site, energy_j=1e7)
    m.tariff(price_usd_per_kwh=[0.1, 0.3], carbon_g_per_kwh=[300, 100], times_s=[0, 600])
    m.minimize_in_order("tardiness_s", {"energy_j": 1.0, "cost_usd": 5.0})
    return m.build()


def arrivals() -> Instance:
    """Jobs at two ingresses, one of which does not reach every site; sites fail, the instance is
    open.
    """
    m = Model("arrivals", time="seconds", horizon_s=600, preemptive=True)
    near, far = m.pool("near", count=2, sleep_w=5, sleeps=True), m.pool("far", count=4, idle_w=10)
    kind = m.kind(
        modes=[m.mode({pool: n}, 1.0 / n, 40, clock=0.5) for pool in (near, far) for n in (1, 2)]
    )
    m.tasks(
        [50.0, 80.0, 30.5],
        kind=kind,
        release_s=[1.5, 2.0, 60.25],
        deadline_s=[100.0, 500.0, 300.0],
        hard=False,
    )
    m.minimize(energy_j=1.0)
    built = m.build()
    outages = outages_in_seconds(built, [30.0, 90.0], 1, [4, -4], [True, False])
    made = with_stream(
        built,
        ingress=[0, 1, 1],
        latency_s=[[0.01, 0.2], [np.inf, 0.05]],
        sent_to=[0, 1, -1],
        outages=outages,
        opens=int(built.to_ticks(1.5)),
        ingress_names=("north", "south"),
    )
    return made.with_objective(Objective.weighted({"j_per_unit": 1.0}))


def one_after_the_other(instance: Instance) -> Schedule:
    """A schedule in topological order with first modes, one task at a time."""
    first = instance.pairs.ptr[:-1]
    mode, length = instance.pairs.mode[first], instance.pairs.duration[first]
    start = np.zeros(instance.num_tasks, dtype=np.int64)
    start[instance.order] = np.cumsum(length[instance.order]) - length[instance.order]
    return Schedule.of(instance, mode, start)


def written(instance: Instance, format: str) -> str:
    """The text of an instance in a format that can be written."""
    write = FORMATS[format].write
    assert write is not None, f"{format} is read only"
    return write(instance)


def originals() -> dict[str, str]:
    """Format name -> text; ``schedule`` is a feasible schedule of ``shop(False)``."""
    sources = {
        "jobshop": shop(False),
        "taillard": shop(False),
        "fjsp": shop(True),
        "rcp": project(),
        "psplib": project(),
    }
    texts = {name: written(instance, name) for name, instance in sources.items()}
    texts["optbench"] = instance_to_json(cluster())
    texts["sacct"], texts["wfformat"] = sacct_text(), workflow_text()
    texts["schedule"] = render(schedule_to_dict(one_after_the_other(shop(False)), shop(False)))
    return texts
