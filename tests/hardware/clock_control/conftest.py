"""What tests of clock control share: a folder of journals, and made-up devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.hardware.clock_control.state_folder import VARIABLE


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of journals and locks, for this process."""
    folder = tmp_path / "state"
    folder.mkdir()
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder
