"""A training is sent by the same mechanism as studies and searches."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.track.runs import MAX_PARAM
from optbench.track.tracking import Tracking
from optbench.track.training_runs import track_training


def test_curves_settings_and_the_file_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTBENCH_WORKSPACE", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    file = tmp_path / "net.safetensors"
    file.write_bytes(b"weights")
    history = [{"reward": 0.5 * k, "latency_s(p99)": 10.0 - k} for k in range(900)] + [
        {"reward": float("nan")}
    ]
    energy = {"energy_j": 26.5, "cpu_s": 2.2, "estimated": True, "unknown": []}
    about = {"settings": {"gamma": 0.9, "long": "x" * (MAX_PARAM + 1)}, "energy": energy}
    run_id = track_training("chsac_af", about, history, file)

    client = Tracking().client
    run = client.get_run(run_id)
    assert run.info.run_name == "chsac_af net.safetensors" and run.info.status == "FINISHED"
    assert run.data.params["gamma"] == "0.9" and run.data.params["long"] == "x" * MAX_PARAM
    assert (
        run.data.tags["optbench.kind"] == "training"
        and run.data.tags["optbench.solver"] == "chsac_af"
    )
    assert run.data.tags["optbench.cell"].startswith("train-chsac_af-net.safetensors-")
    assert run.data.tags["mlflow.note.content"].startswith('{"settings": {"gamma": 0.9, ')
    assert run.data.metrics["training_energy_j"] == 26.5
    assert run.data.metrics["training_cpu_s"] == 2.2
    assert run.data.tags["optbench.run_energy"] == "estimated"
    rewards = client.get_metric_history(run_id, "reward")
    assert [(point.step, point.value) for point in rewards] == [(k, 0.5 * k) for k in range(900)]
    assert len(client.get_metric_history(run_id, "latency_s_p99_")) == 900
    assert [entry.path for entry in client.list_artifacts(run_id)] == ["net.safetensors"]
