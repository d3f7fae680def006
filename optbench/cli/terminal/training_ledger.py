"""The energy of a training: it is measured, survives a kill and ends up in the checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from optbench.cli.terminal.metering import metered
from optbench.hardware.cpu_energy.assumed_power import assumed_w
from optbench.hardware.run_energy import RunEnergy
from optbench.plugins.training import TrainingResult, TrainingRun
from optbench.plugins.training_energy import (
    added,
    energy_of_training,
    keep_with,
    ledger_of,
    read_ledger,
    read_training_energy,
    write_ledger,
)


class TrainingLedger:
    """A context manager around ``Trainable.train``; ``kept`` takes its result.

    Every ten seconds the energy so far is written beside the checkpoint, so that a killed training
    loses no more than that. Where the training continues an earlier one, it counts what that drew;
    where it starts from the checkpoint of another (``start``), that one's training as well.
    """

    def __init__(self, run: TrainingRun) -> None:
        self.run = run
        self.output, self.before = run.output, self._before()
        self.meter = metered(self._note)

    def __enter__(self) -> TrainingLedger:
        self.meter.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.meter.__exit__(kind, error, trace)
        if error is not None and self.run.kept.exists():
            self._note(self.meter.so_far())

    def kept(self, done: TrainingResult) -> TrainingResult:
        """Keep the energy with the checkpoint and return the result with it in ``about``."""
        energy = self._total(self.meter.so_far())
        if not done.interrupted:
            keep_with(self.output, energy)
        elif done.resumes:
            write_ledger(self.output, energy)
        else:
            ledger_of(self.output).unlink(missing_ok=True)
        return replace(done, about={**done.about, "energy": energy})

    def _note(self, so_far: RunEnergy) -> None:
        write_ledger(self.output, self._total(so_far))

    def _total(self, this: RunEnergy) -> dict[str, Any]:
        energy = energy_of_training(with_nodes(this, self.run.pool.cpu_elsewhere_s))
        return energy if self.before is None else added(self.before, energy)

    def _before(self) -> dict[str, Any] | None:
        """Return what was drawn before this run of the training."""
        run = self.run
        continues = not run.fresh and (run.kept.exists() or run.output.exists())
        if continues and (found := read_ledger(run.output)) is not None:
            return found
        start = getattr(run.settings, "start", None)
        before = energy_before(Path(start)) if start else None
        if not (continues and run.kept.exists()):
            return before
        # The state was written by a version that did not measure.
        unknown = energy_unknown("an earlier part of the training")
        return unknown if before is None else added(before, unknown)


def with_nodes(here: RunEnergy, cpu_s: float) -> RunEnergy:
    """Return the energy with that of so many processor seconds on other nodes, which is not
    measured there. Workers on other nodes see no GPU, so that nothing else is missing.
    """
    if cpu_s <= 0:
        return here
    power_w = assumed_w()
    words = f"estimated, processors of other nodes: {cpu_s:.1f} s at {power_w:g} W"
    return replace(
        here,
        cpu_j=here.cpu_j + cpu_s * power_w,
        cpu_s=here.cpu_s + cpu_s,
        cpu_source="estimate",
        assumed_w=power_w,
        notes=(*here.notes, words),
    )


def energy_before(start: Path) -> dict[str, Any]:
    """Return what the training of the checkpoint drew from which another starts."""
    return read_training_energy(start) or energy_unknown(f"the training of {start.name}")


def energy_unknown(part: str) -> dict[str, Any]:
    """Return nothing measured, with the part that is missing."""
    nothing = energy_of_training(RunEnergy(0.0, "powercap", 0.0))
    return {**nothing, "runs": 0, "unknown": [part]}
