"""``optbench train``: what is refused before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.cli.main import main


def test_a_folder_is_no_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["train", "chsac_af", "--on", "geo_dc:days=0.05", "-o", str(tmp_path), "--no-track"])
        == 2
    )
    assert "is a folder; give a file" in capsys.readouterr().err


def test_a_file_of_something_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    assert (
        main(["train", "chsac_af", "--on", "geo_dc:days=0.05", "-o", str(notes), "--no-track"]) == 2
    )
    assert "notes.txt: not a readable safetensors file" in capsys.readouterr().err
    assert notes.read_text() == "mine"
