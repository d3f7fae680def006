"""A learned router after CHSAC-AF: constrained soft actor-critic on sites and devices; one network
for all latency budgets.

The network sees the sites, the job, and the price of latency μ that keeps the budget (a dual,
learned with it and stored beside it); it draws a site and a number of devices from those that are
legal. The clock is the oracle's, argmin over f of energy + μ time (in the paper's way argmin of
energy), raised to the lowest that meets a deadline. ``optbench.learn.sites.training_settings``
lists what was corrected in the paper's algorithm; ``optbench train chsac_af --on geo_dc -p
mode=paper`` trains it as printed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from optbench import __version__
from optbench.errors import ParameterError
from optbench.learn.sites.checkpoints import SiteCheckpoint, read_checkpoint, write_checkpoint
from optbench.learn.sites.pilot import run_network
from optbench.learn.sites.training_settings import SiteTraining
from optbench.model.instance import Instance
from optbench.plugins.training import FIRST_SEED, Trainable, TrainingResult, TrainingRun
from optbench.sim.kernel.plant import Fault
from optbench.sim.rules import Trace
from optbench.sim.sites.sites import grid_of, why_unsupported

from ._routers import budget_of
from ._sites import SITES, SitePolicy

SHIPPED = Path(__file__).with_name("_chsac_af.safetensors")
DEFAULT_BUDGET_S = 1490.0
# Instances of the first problem on which the prices of budgets are found.
MOST_CALIBRATED = 12


@dataclass(frozen=True)
class ChsacAf(SitePolicy, Trainable):
    """Constrained hybrid soft actor-critic, trained: site and devices by one network for all
    latency budgets, clock by an oracle.

    ``latency_budget_s`` is the mean time in the system to keep (default: that of the instance's
    limit on flow time, else 1490 s); ``gain`` is by how much the logarithm of the price of latency
    follows each job's error, so that the budget is kept under other loads than that of the training
    (0: the stored price, fixed); ``price_w``, where it is given, is that price itself, fixed.
    ``checkpoint`` is a file of ``optbench train``; ``greedy`` takes the best option instead of
    drawing one; ``network=no`` takes the option of least energy + price · time, an input of the
    network, at the same prices and the same dual, which shows what the inputs achieve without the
    network. ``inf_priority`` serves waiting inference work before any other, as in the simulator of
    the paper's authors.
    """

    supports: ClassVar[frozenset[str] | set[str]] = SITES
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"pilot"})
    needs_in_training: ClassVar[frozenset[str] | set[str]] = frozenset({"pilot", "pilot_training"})
    settings: ClassVar[type] = SiteTraining
    distributes: ClassVar[str | None] = "the environments of its rollouts"

    latency_budget_s: float | None = None
    price_w: float | None = None
    gain: float = 5e-4
    checkpoint: str | None = None
    greedy: bool = False
    network: bool = True
    inf_priority: bool = True

    def __post_init__(self) -> None:
        for name in ("latency_budget_s", "price_w"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ParameterError(f"chsac_af: {name} is {value!r}; it must be positive")
        if not 0 <= self.gain < 1:
            raise ParameterError(
                f"chsac_af: gain is {self.gain!r}; it must be at least 0 and below 1"
            )
        if self.latency_budget_s is not None and self.price_w is not None:
            raise ParameterError(
                f"chsac_af: price_w is {self.price_w!r} beside latency_budget_s; give one of them"
            )

    def refuse(self, instance: Instance) -> str | None:
        reason = why_unsupported(instance)
        if reason is not None:
            return reason
        found, grid = self._network(), grid_of(instance)
        pools, widest = grid.mode_at.shape[1], grid.widest
        if (
            self.network
            and found.pilot.kind == "flat"
            and (pools, widest) != (found.pools, found.widest)
        ):
            return (
                f"its network was trained on {found.pools} sites and up to {found.widest} "
                f"devices per job, here are {pools} and "
                f"{widest}; train one: optbench train chsac_af --on PROBLEM -o FILE, then -p "
                "checkpoint=FILE"
            )
        return None

    def play(
        self,
        instance: Instance,
        rng: np.random.Generator,
        faults: Sequence[Fault] = (),
        until: float = math.inf,
    ) -> Trace:
        found = self._network()
        pilot = found.pilot.taking_best() if self.greedy else found.pilot
        if not self.network:
            pilot = pilot.inputs_alone()
        known: dict[str, Any] = {"mean_units": found.mean_units, "inf_priority": self.inf_priority}
        if self.price_w is not None:
            return run_network(instance, pilot, self.price_w, rng, faults, until, **known)[0]
        budget_s = budget_of(instance, self.latency_budget_s) or DEFAULT_BUDGET_S
        if self.latency_budget_s is not None:
            found.check_budget("chsac_af", self.latency_budget_s)
        range_w = (0.5 * float(found.prices_w.min()), 2.0 * float(found.prices_w.max()))
        price_w = found.price_w(budget_s)
        return run_network(
            instance,
            pilot,
            price_w,
            rng,
            faults,
            until,
            budget_s=budget_s,
            gain=self.gain,
            range_w=range_w,
            **known,
        )[0]

    def _network(self) -> SiteCheckpoint:
        path = SHIPPED if self.checkpoint is None else Path(self.checkpoint)
        return _read(path, path.stat().st_mtime_ns if path.exists() else 0)

    def train(self, run: TrainingRun) -> TrainingResult:
        """Use the problems in turn for the environments, each with its own seed; prices of budgets
        are those of the first.
        """
        from optbench.learn.sites.actor_training import train_sites

        settings: SiteTraining = run.settings
        _spare_finished(run)
        seeds = range(FIRST_SEED + 100 * run.seed, FIRST_SEED + 100 * run.seed + settings.envs)
        instances = [
            run.problems[k % len(run.problems)].instance(seed) for k, seed in enumerate(seeds)
        ]
        for instance in instances:
            grid_of(instance)  # raises if no policy for sites can run the instance
        if run.fresh:
            run.kept.unlink(missing_ok=True)
        first = instances[:: len(run.problems)][:MOST_CALIBRATED]
        done = train_sites(
            instances,
            settings,
            seed=run.seed,
            names=run.names,
            calibrate_on=first,
            kept=run.kept,
            on_point=run.on_point,
            stop=run.stop,
            pool=run.pool,
        )
        about = {
            "solver": "chsac_af",
            "trained_on": list(run.names),
            "instance_seeds": [seeds.start, seeds.stop - 1],
            "optbench": __version__,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            **done.checkpoint.provenance,
        }
        done.checkpoint.provenance.clear()
        done.checkpoint.provenance.update(about)
        write_checkpoint(run.output, done.checkpoint)
        prices = dict(
            zip(done.checkpoint.budgets_s.tolist(), done.checkpoint.prices_w.tolist(), strict=True)
        )
        return TrainingResult(done.history, {**about, "prices_w": prices}, done.interrupted)


def _spare_finished(run: TrainingRun) -> None:
    """Refuse to replace a finished network, or a file of something else, unless that is
    requested.
    """
    if run.fresh or run.kept.exists() or not run.output.exists():
        return
    if read_checkpoint(run.output).provenance.get("complete", True):
        raise ParameterError(
            f"{run.output} is the checkpoint of a finished training; --fresh trains anew and "
            "replaces it"
        )


@lru_cache(maxsize=4)
def _read(path: Path, _modified_ns: int) -> SiteCheckpoint:
    return read_checkpoint(path)
