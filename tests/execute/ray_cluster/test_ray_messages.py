"""What Ray's threads print is kept apart from the progress of a command."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from optbench.execute.ray_cluster.ray_messages import ray_messages_in_a_file


def test_only_rays_threads_write_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "optbench.toml").touch()
    monkeypatch.setenv("OPTBENCH_WORKSPACE", str(tmp_path))
    with ray_messages_in_a_file() as path:
        assert not path.exists()
        for name, words in (
            ("ray_listen_error_messages", "(raylet) [state-dump] NodeManager"),
            ("progress", "3 of 4 cells"),
        ):
            thread = threading.Thread(target=print, args=(words,), name=name)
            thread.start()
            thread.join()
        print("the study's own line")
    assert path == tmp_path / ".optbench" / "ray_messages.log"
    assert path.read_text() == "(raylet) [state-dump] NodeManager\n"
    said = capsys.readouterr()
    assert said.err == "3 of 4 cells\nthe study's own line\n" and said.out == ""
