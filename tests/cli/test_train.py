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


@pytest.mark.parametrize("words", [("-n", "2"), ("--backend", "ray")])
def test_a_training_with_nothing_to_distribute_says_so(
    words: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--on", "colocation", "-o", str(tmp_path / "networks"), "--no-track", *words]
    assert main(["train", "gogh", *given]) == 2
    err = capsys.readouterr().err
    assert f"{' '.join(words)}: training 'gogh' has nothing to distribute" in err
    assert "one after another" in err


def test_an_address_is_for_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--on", "geo_dc:days=0.05", "-o", str(tmp_path / "a"), "--address", "head:6379"]
    assert main(["train", "chsac_af", *words, "--no-track"]) == 2
    assert "--address head:6379 is for --backend ray" in capsys.readouterr().err
