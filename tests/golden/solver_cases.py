"""The instances that every capable solver decides: small ones of all families, some 200."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class InstanceCase:
    """A problem with small parameters, and a seed."""

    spec: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.spec} #{self.seed}"


# Sites that exact solvers can do: three of them, few devices.
SMALL_SITES = "only=[us-west,eu-central,us-east],shrink=0.06,max_gpus=2,days=0.02,drain=yes"

SPECS: dict[str, int] = {
    "jobshop:jobs=3,machines=3": 5,
    "jobshop:jobs=5,machines=4": 5,
    "jobshop:jobs=8,machines=3,low=5,high=20": 3,
    "flexible_jobshop:jobs=3,machines=3,operations=3": 5,
    "flexible_jobshop:jobs=4,machines=4,operations=3,flexibility=3.0,spread=0.5": 5,
    "flexible_jobshop:jobs=6,machines=3,operations=2,low=2,high=9": 3,
    "rcpsp:activities=6": 5,
    "rcpsp:activities=10,resources=2": 5,
    "rcpsp:activities=8,complexity=1.2,strength=0.2,factor=0.8": 4,
    "night_batch": 1,
    "night_batch:a100=2,l4=2,power_w=700": 1,
    "night_batch:hours=8": 1,
    "gpu_dag:tasks=4": 6,
    "gpu_dag:tasks=8,gpus=4,types=2,clocks=3": 4,
    "gpu_dag:tasks=12": 4,
    "gpu_dag:tasks=6,gang=1,transfers=no,deadlines=none": 4,
    "gpu_dag:tasks=6,deadlines=tight": 4,
    "gpu_dag:tasks=6,deadlines=flexible,hard=yes": 4,
    "gpu_dag:tasks=6,power_cap=0.6": 4,
    "gpu_dag:tasks=6,nodes=2,node_cap=0.7": 4,
    "gpu_dag:tasks=6,price=yes": 4,
    "gpu_dag:tasks=6,carbon=yes,deadlines=none": 4,
    "gpu_dag:tasks=6,cpus=2": 4,
    "gpu_dag:tasks=6,cpus=2,prepare=either": 4,
    "gpu_dag:tasks=6,pooled=no": 4,
    "gpu_dag:tasks=6,sizes=mixed": 4,
    "gpu_dag:tasks=6,sizes=small,tick_s=0.1": 4,
    "gpu_dag:tasks=6,tick_s=10": 4,
    "gpu_dag:tasks=6,deadlines=none,within=1.5": 4,
    "gpu_dag:tasks=6,deadlines=none,within=1": 4,
    "gpu_dag:tasks=6,shape=fork_join": 4,
    "gpu_dag:tasks=6,shape=chains": 4,
    "gpu_dag:tasks=6,shape=random": 4,
    "gpu_dag:tasks=6,shape=independent": 4,
    "gpu_dag:tasks=6,shape=batch": 4,
    "gpu_dag:tasks=6,shape=pipeline,stages=2": 4,
    "gpu_dag:tasks=6,shape=data_parallel,replicas=2,iterations=2": 4,
    "gpu_dag:tasks=6,profiles=[A100-SXM,L4],gpus=4": 4,
    "geo_dc:days=0.02": 5,
    "geo_dc:days=0.02,rate=0.005,sizes=exponential": 3,
    "geo_dc:days=0.02,inference=0.02,inference_units=2000,deadline_s=600": 3,
    "geo_dc:days=0.02,cap_w=40000": 3,
    "geo_dc:days=0.02,preemptive=yes": 3,
    "geo_dc:days=0.05,outage=[largest@10m+20m],shrink=0.2": 3,
    "geo_dc:days=0.05,maintenance=[us-west@10m+20m],shrink=0.2": 3,
    "geo_dc:days=0.02,burst=[3@5m+10m]": 3,
    "geo_dc:days=0.02,rate=0.001,drain=yes": 3,
    "geo_dc:days=0.02,rate=0.001,drain=yes,minimize=cost,local_hours=yes,sojourn_s=4h": 3,
    "geo_dc:days=0.02,rate=0.001,drain=yes,minimize=carbon,preemptive=yes": 3,
    f"geo_dc:jobs=5,tick_s=300,{SMALL_SITES}": 5,
    f"geo_dc:jobs=9,{SMALL_SITES}": 5,
    f"geo_dc:jobs=5,tick_s=300,minimize=cost,sojourn_s=2h,{SMALL_SITES}": 5,
    f"geo_dc:jobs=9,outage=[largest@10m+30m],{SMALL_SITES}": 3,
}
# Units of work by solver where one is not enough or too much: seconds of CP-SAT's deterministic
# clock, nodes of HiGHS, samples or steps of the searches.
WORK_LIMITS = {"cpsat": 0.05, "highs": 2.0, "random_rules": 20.0, "lp_guided": 20.0}


# Solvers that are not run on a specification, and why.
LEFT_OUT: dict[tuple[str, str], str] = {
    (
        "highs",
        f"geo_dc:jobs=5,tick_s=300,minimize=cost,sojourn_s=2h,{SMALL_SITES}",
    ): "a minute for its first node",
    ("highs", "gpu_dag:tasks=6,deadlines=none,within=1"): "up to 15 seconds for its first node",
}
# More than a second for all solvers together.
SLOW = {
    "night_batch:a100=2,l4=2,power_w=700",
    "gpu_dag:tasks=12",
    "geo_dc:days=0.02",
    "geo_dc:days=0.02,inference=0.02,inference_units=2000,deadline_s=600",
    "geo_dc:days=0.02,rate=0.001,drain=yes",
    f"geo_dc:jobs=9,{SMALL_SITES}",
}


def instance_cases() -> Iterator[InstanceCase]:
    for spec, seeds in SPECS.items():
        for seed in range(seeds):
            yield InstanceCase(spec, seed)


def sample_cases() -> list[InstanceCase]:
    """Every second specification with a seed that moves on from one to the next, and not
    the slow.
    """
    specs = list(SPECS.items())[::2]
    return [
        InstanceCase(spec, k % seeds) for k, (spec, seeds) in enumerate(specs) if spec not in SLOW
    ]
