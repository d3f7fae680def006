"""The workspace's database is there whole or not at all."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from unittest import mock

from optbench.track.tracking import Tracking
from optbench.track.tracking_address import TrackingAddress


def test_killed_while_it_makes_the_database_a_process_leaves_none_of_it(tmp_path: Path) -> None:
    place = TrackingAddress.of(tmp_path)
    child = os.fork()
    if child == 0:
        with mock.patch.object(os, "replace", lambda *_: os.kill(os.getpid(), signal.SIGKILL)):
            Tracking(workspace=tmp_path).client.search_experiments()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert (
        not place.database.exists() and len(list(place.database.parent.glob(".mlflow.db.*"))) == 1
    )
    assert [each.name for each in Tracking(workspace=tmp_path).client.search_experiments()] == [
        "Default"
    ]
    assert place.database.exists()
