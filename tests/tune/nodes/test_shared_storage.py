"""Which storages workers on several machines can share."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.errors import ParameterError
from optbench.tune.nodes.shared_storage import absolute, shared_url


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("/home/me/trials.journal", "is a journal file, whose locks hold on one machine"),
        ("sqlite:///trials.db", "is an SQLite file, whose locks hold on one machine"),
        ("postgresql://me:secret@localhost/trials", "is on localhost, which on every node means"),
        ("postgresql:///trials", "is on a socket of this machine, which on every node means"),
    ],
)
def test_what_other_machines_cannot_reach_is_refused(url: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as raised:
        shared_url(url, "head", {"head", "node-7"})
    assert "other machines (node-7)" in str(raised.value)
    assert "--storage postgresql://USER@HOST/DATABASE" in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_database_by_its_host_is_shared() -> None:
    url = "postgresql+psycopg2://me:secret@db.cluster:5432/trials"
    assert shared_url(url, "head", {"head", "node-7"}) == url


def test_files_are_shared_on_one_machine_by_their_whole_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shared_url("my.journal", "head", {"head"}) == str(tmp_path / "my.journal")
    assert absolute("sqlite:///my.db") == f"sqlite:///{tmp_path}/my.db"
    assert absolute("sqlite:////srv/my.db") == "sqlite:////srv/my.db"
    local = "postgresql://me@localhost/trials"
    assert shared_url(local, "head", {"head"}) == local
