"""A night of training on a small GPU cluster: four pipelines (prepare, train, evaluate) and a
report.

The objective is the energy, plus 200 J per second of makespan and 500 J per second of tardiness.
This file is a good first example, because it uses nothing but ``ob.Model``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import optbench as ob

# Name, seconds of data preparation, units of training, GPUs it can be spread over, GB of data, due
# after seconds.
PIPELINES = (
    ("vision", 1500, 90_000, (1, 2), 120, 5400),
    ("speech", 900, 60_000, (1, 2), 80, 7200),
    ("language", 2400, 160_000, (1, 2, 4), 200, 10800),
    ("ranking", 1200, 40_000, (1, 2), 60, 9000),
)
# Seeds other than 0 multiply the units of each pipeline by a factor between these.
LEAST, MOST = 0.7, 1.1


@dataclass(frozen=True)
class NightBatch(ob.Problem):
    """A night of training under a power cap: four pipelines and a report, for energy, makespan and
    tardiness.

    Seed 0 is the night as declared; every other seed draws other amounts of work. ``hours`` is a
    hard limit on the makespan; rules that only look at the next task may break it.
    """

    a100: int = 4
    l4: int = 4
    power_w: float = 1000.0
    hours: float | None = None

    def __post_init__(self) -> None:
        for name in ("a100", "l4", "power_w", "hours"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is {value}; it must be positive")

    def instance(self, seed: int = 0) -> ob.Instance:
        m = ob.Model(f"night_batch-{seed}", tick_s=300)  # time in steps of five minutes
        shares = (
            np.random.default_rng(seed).uniform(LEAST, MOST, len(PIPELINES))
            if seed
            else np.ones(len(PIPELINES))
        )

        # Hardware: power, speed and clocks of the GPUs come from shipped profiles; GPUs sleep when
        # they are not busy.
        cpu = m.pool("cpu", count=2, idle_w=40)
        a100 = m.pool(
            "a100", count=self.a100, profile="A100-PCIe", clocks=(0.6, 0.8, 1.0), sleeps=True
        )
        l4 = m.pool("l4", count=self.l4, profile="L4", clocks=(0.6, 1.0), sleeps=True)
        for sender, receiver in ((cpu, a100), (cpu, l4), (a100, l4)):
            m.link(sender, receiver, bandwidth_gbit_s=10, latency_ms=1, energy_j_per_gb=20)

        # Work: prepare data on a CPU, train on one or more GPUs of either kind, evaluate, and
        # report when all is done.
        evaluations = []
        for share, (name, prepare_s, most_units, gpus, data_gb, due_s) in zip(
            shares.tolist(), PIPELINES, strict=True
        ):
            units = round(share * most_units)
            prep = m.task(
                f"{name}/prep", modes=[m.mode(cpu, time_s=prepare_s, energy_j=110.0 * prepare_s)]
            )
            train = m.task(
                f"{name}/train",
                kind="training",
                units=units,
                gpus=gpus,
                memory_gb=16,
                data_gb={prep: data_gb},
            )
            test = m.task(
                f"{name}/eval",
                kind="inference",
                units=units / 4,
                data_gb={train: 4},
                deadline_s=due_s,
            )
            evaluations.append(test)
        m.task("all/report", modes=[m.mode(cpu, time_s=300, energy_j=30_000)], after=evaluations)

        # Limits and aim.
        m.limit(power_w=self.power_w)
        if self.hours is not None:
            m.limit(makespan_s=3600 * self.hours)
        m.minimize(energy_j=1.0, makespan_s=200.0, tardiness_s=500.0)
        return replace(m.build(), problem="night_batch")
