"""Where journals lie: a setting, root's folder, or the user's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from optbench.hardware.clock_control.state_folder import (
    LOCK,
    OF_ROOT,
    VARIABLE,
    StateFolderError,
    folder_of_user,
    path_of,
    prepared,
    readable_folders,
    state_folder,
    uuid_of,
)


def test_the_setting_counts_for_more_than_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv(VARIABLE, raising=False)
    # Root has one folder, however he became root; anybody else his own, and looks at root's too.
    own = OF_ROOT if os.geteuid() == 0 else tmp_path / "xdg" / "optbench" / "gpu"
    assert state_folder() == own
    assert readable_folders() == ((own,) if own == OF_ROOT else (own, OF_ROOT))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named"))
    assert state_folder() == tmp_path / "named"
    assert readable_folders() == (tmp_path / "named",)


def test_a_relative_folder_of_state_is_ignored() -> None:
    home = Path("/home/ada")
    own = home / ".local" / "state" / "optbench" / "gpu"
    assert folder_of_user({}, home) == own
    assert folder_of_user({"XDG_STATE_HOME": "state"}, home) == own
    assert folder_of_user({"XDG_STATE_HOME": "/s"}, home) == Path("/s/optbench/gpu")
    assert folder_of_user({}, Path("ada")).is_absolute()


def test_a_watchdog_refuses_a_relative_folder() -> None:
    told: dict[str, object] = {
        "folder": "state",
        "uuids": [],
        "locks": [],
        "target": None,
        "alive": -1,
        "answer": -1,
    }
    words = "-c", f"from optbench.hardware.clock_control.watchdog import watch; watch({told})"
    said = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60)
    assert (said.returncode, "'state' is not absolute" in said.stderr) == (1, True)


def test_a_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    assert prepared(tmp_path / "a" / "b").is_dir()
    assert prepared(tmp_path / "a" / "b").is_dir()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateFolderError, match=r"file/below.*cannot be made: Not a directory"):
        prepared(tmp_path / "file" / "below")


@pytest.mark.parametrize("uuid", ["GPU-1", "../x", "MIG-a.b", "ä ö"])
def test_the_device_is_read_back_from_the_name_of_a_file(tmp_path: Path, uuid: str) -> None:
    path = path_of(tmp_path, uuid, LOCK)
    assert path.parent == tmp_path
    assert uuid_of(path) == uuid
