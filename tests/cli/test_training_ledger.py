"""What a training drew: kept over interruptions and kills, and with the checkpoint at its end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from optbench.cli.terminal.training_ledger import TrainingLedger
from optbench.plugins.training import TrainingResult, TrainingRun
from optbench.plugins.training_energy import (
    keep_with,
    ledger_of,
    read_ledger,
    read_training_energy,
)

WATTS = 10.0


@dataclass(frozen=True)
class Settings:
    start: str | None = None


@pytest.fixture(autouse=True)
def stated_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTBENCH_POWERCAP_ROOT", str(tmp_path / "none"))
    monkeypatch.setenv("OPTBENCH_CPU_WATTS", str(WATTS))


def checkpoint(path: Path) -> Path:
    save_file({"a": np.ones(2)}, path)
    return path


def trained(
    path: Path, start: str | None = None, fresh: bool = False, **ending: bool
) -> TrainingResult:
    """A training that adds up numbers; ``ending`` as of ``TrainingResult``."""
    run = TrainingRun([], path, Settings(start), fresh=fresh)
    with TrainingLedger(run) as ledger:
        sum(range(300_000))
        done = TrainingResult([], {"seed": 0}, **{"interrupted": False, **ending})
        if done.interrupted and done.resumes:
            run.kept.touch()
        elif not done.interrupted:
            checkpoint(path)
            run.kept.unlink(missing_ok=True)
        return ledger.kept(done)


def test_a_training_ends_with_its_energy_in_the_checkpoint(tmp_path: Path) -> None:
    done = trained(tmp_path / "net")
    energy = done.about["energy"]
    assert done.about["seed"] == 0 and energy == read_training_energy(tmp_path / "net")
    assert energy["energy_j"] == pytest.approx(WATTS * energy["cpu_s"], abs=1e-4)
    assert energy["cpu_s"] > 0 and (energy["runs"], energy["unknown"]) == (1, [])


def test_a_training_that_goes_on_adds_up(tmp_path: Path) -> None:
    path = tmp_path / "net"
    first = trained(path, interrupted=True).about["energy"]
    assert read_ledger(path) == first and not path.exists()
    whole = trained(path).about["energy"]
    assert whole["runs"] == 2 and whole["energy_j"] > first["energy_j"]
    assert whole["unknown"] == [] and not ledger_of(path).exists()
    anew = trained(path, fresh=True).about["energy"]
    assert anew["runs"] == 1


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    path = tmp_path / "net"
    trained(path, interrupted=True)
    ledger_of(path).unlink()
    assert trained(path).about["energy"]["unknown"] == ["an earlier part of the training"]
    other = checkpoint(tmp_path / "other")
    unknown = trained(tmp_path / "net2", start=str(other)).about["energy"]
    assert unknown["unknown"] == ["the training of other"]


def test_the_training_of_the_checkpoint_from_which_it_starts_counts(tmp_path: Path) -> None:
    start = checkpoint(tmp_path / "start")
    keep_with(start, {**trained(tmp_path / "x").about["energy"], "energy_j": 1000.0})
    whole = trained(tmp_path / "net", start=str(start)).about["energy"]
    assert 1000.0 < whole["energy_j"] < 1100.0 and whole["runs"] == 2


def test_what_cannot_go_on_keeps_nothing(tmp_path: Path) -> None:
    path = tmp_path / "net"
    done = trained(path, interrupted=True, resumes=False)
    assert done.about["energy"]["runs"] == 1 and not ledger_of(path).exists()


def test_an_error_keeps_what_was_drawn_where_the_training_can_go_on(tmp_path: Path) -> None:
    run = TrainingRun([], tmp_path / "net", Settings())
    run.kept.touch()
    with pytest.raises(ZeroDivisionError), TrainingLedger(run):
        sum(range(300_000))
        raise ZeroDivisionError
    ledger = read_ledger(run.output)
    assert ledger is not None and ledger["cpu_s"] > 0
    assert ledger["unknown"] == ["an earlier part of the training"]
