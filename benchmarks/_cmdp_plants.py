"""The plants of ``tiny_cmdp.py``: one to three shipped sites with a few GPUs each."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from optbench.model.instance import Instance
from optbench.plugins.discovery import load_problem
from tests.tiny_plants.chain import chain_of
from tests.tiny_plants.occupancy import OccupancyProgramme

ROOT = Path(__file__).resolve().parents[1]

SHIPPED = ROOT / "problems" / "_geo_paper.json"
MEAN_UNITS, DAYS = 50_000.0, 100.0


@dataclass(frozen=True, eq=False)
class Plant:
    """Sites of the shipped file with so many GPUs and these clocks; ``budgets`` limit the mean
    sojourn.
    """

    name: str
    gpus: dict[str, int]
    clocks: tuple[float, ...]
    rate: float
    room: int
    budgets: tuple[float | None, ...]

    @cache  # noqa: B019  (a handful of plants, as long as the script)
    def file(self) -> str:
        data = json.loads(SHIPPED.read_text())
        sites = {
            name: {"gpu_count": n, "freq_levels": list(self.clocks)}
            | {key: data["sites"][name][key] for key in ("gpu_type", "p_sleep_w", "training")}
            for name, n in self.gpus.items()
        }
        path = Path(tempfile.mkdtemp(prefix="tiny-cmdp-")) / "sites.json"
        path.write_text(
            json.dumps(
                {
                    "sites": sites,
                    "ingresses": ["gw"],
                    "wan_latency_ms": {"gw": dict.fromkeys(sites, 0)},
                }
            )
        )
        return str(path)

    def instance(self, seed: int) -> Instance:
        made: Instance = load_problem(
            f"geo_dc:days={DAYS},rate={self.rate},sizes=exponential,sites={self.file()}"
        ).instance(seed)
        return made

    def programme(self, room: int | None = None) -> OccupancyProgramme:
        return OccupancyProgramme(
            chain_of(self.instance(0), self.rate, MEAN_UNITS, self.room if room is None else room)
        )


PLANTS = (
    Plant(
        "two sites, 2 + 2 GPUs",
        {"us-west": 2, "ap-southeast": 2},
        (0.5, 1.0),
        8e-4,
        8,
        (None, 6000.0, 4000.0, 3000.0, 2500.0, 2200.0),
    ),
    Plant(
        "three sites, 1 + 1 + 1 GPUs",
        {"us-west": 1, "eu-west": 1, "ap-southeast": 1},
        (0.5, 1.0),
        6e-4,
        6,
        (None, 6000.0, 4000.0, 3000.0),
    ),
    Plant(
        "one site, 4 GPUs",
        {"ap-northeast": 4},
        (0.4, 0.7, 1.0),
        1e-3,
        20,
        (None, 2500.0, 2000.0, 1500.0, 1200.0),
    ),
)
