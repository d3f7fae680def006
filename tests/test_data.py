"""Public data: the registry, where files are looked for, and fetching from a real server on
loopback.
"""

from __future__ import annotations

import csv
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from optbench.data.fetch import fetch, unfetchable
from optbench.data.registry import DataError, data_path, data_sets, find, locate
from optbench.errors import UnknownNameError
from optbench.run.best_known import published

# Published beside the manifest, with a README of its own.
BESIDE = {"chsac-af/reference/arrivals.csv.gz"}
CONTENT = b"not the published file"


class Server(http.server.ThreadingHTTPServer):
    """Serves files from memory, and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path = unquote(self.path)
        self.server.asked.append(path)
        body = self.server.files.get(path)
        self.send_response(200 if body is not None else 404)
        # Longer than what follows: how a broken connection looks.
        self.send_header(
            "Content-Length",
            str(len(body or b"") + 10 * (path in self.server.files and body == CONTENT[:5])),
        )
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    """A mirror, an empty cache and no data folder."""
    with Server() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        monkeypatch.setenv(
            "OPTBENCH_DATA_URL",
            f"http://127.0.0.1:{running.server_port}/{{repository}}/{{commit}}/{{path}}",
        )
        monkeypatch.setenv("OPTBENCH_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("OPTBENCH_DATA", raising=False)
        yield running
        running.shutdown()


def served(name: str) -> str:
    file = find(name)
    return f"/{file.repository}/{file.commit}/{file.source_path}"


def test_the_registry_is_the_manifest(data_dir: Path) -> None:
    files = {file.path: file for entry in data_sets().values() for file in entry.files}
    with (data_dir / "MANIFEST.csv").open(newline="") as manifest:
        rows = {row["path"]: row for row in csv.DictReader(manifest)}
    assert files.keys() == rows.keys() | BESIDE
    for path, row in rows.items():
        file = files[path]
        assert (file.size, file.sha256) == (int(row["bytes"]), row["sha256"])
        if row["status"] == "verbatim":
            assert (file.repository, file.commit, file.source_path) == (
                row["repository"],
                row["commit"],
                row["source_path"],
            )
        else:
            assert file.url is None


def test_every_published_file_is_intact(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTBENCH_DATA", str(data_dir))
    assert {locate(file)[0] for entry in data_sets().values() for file in entry.files} == {"data"}
    assert data_path("jobshop/ft06") == data_dir / "jobshop" / "ft06.txt"
    assert (
        data_path("rcpsp/j30_1_1")
        == data_path("rcpsp/j30/j30_1_1")
        == data_dir / "rcpsp" / "j30" / "j30_1_1.rcp"
    )


def test_published_bounds(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTBENCH_DATA", str(data_dir))
    assert published(
        ["jobshop/ft06", "jobshop/ft06.txt", "jobshop/swv07", "rcpsp/j30/j30_1_1.rcp"]
    ) == {
        "jobshop/ft06": (55, 55),
        "jobshop/ft06.txt": (55, 55),
        "jobshop/swv07": (1541, 1594),
        "rcpsp/j30/j30_1_1.rcp": (43, 43),
    }
    assert published(["flexible-jobshop/ft06", "mine"]) == {}


def test_the_address() -> None:
    file = find("gavel/msr_51b7ef_seed3")
    assert file.url == (
        "https://raw.githubusercontent.com/stanford-futuredata/gavel/c4fa40097339e9608ab71fd64c8bdea96a5e4a4c/"
        "scheduler/traces/msr/seed%3D3/51b7ef.trace"
    )


def test_fetch_once_check_and_keep(server: Server, data_dir: Path, tmp_path: Path) -> None:
    body = (data_dir / "jobshop" / "ft06.txt").read_bytes()
    server.files[served("jobshop/ft06")] = body
    with pytest.raises(
        DataError,
        match=r"jobshop/ft06.txt is not here; fetch it with `optbench data fetch jobshop/ft06`",
    ):
        data_path("jobshop/ft06")
    seen: list[tuple[str, int]] = []
    paths = fetch(["jobshop/ft06"], lambda file, size: seen.append((file.path, size)))
    assert paths == [tmp_path / "cache" / "data" / "jobshop" / "ft06.txt"]
    assert paths[0].read_bytes() == body
    assert seen == [("jobshop/ft06.txt", len(body))]
    assert fetch(["jobshop/ft06"]) == [data_path("jobshop/ft06")]
    assert len(server.asked) == 1, "what is in the cache is not fetched again"


def test_a_damaged_copy_is_noticed_and_replaced(server: Server, data_dir: Path) -> None:
    body = (data_dir / "jobshop" / "ft06.txt").read_bytes()
    server.files[served("jobshop/ft06")] = body
    (path,) = fetch(["jobshop/ft06"])
    path.write_bytes(body.replace(b"6", b"7", 1))
    with pytest.raises(DataError, match=r"ft06.txt is not the published file: its SHA-256 is not"):
        data_path("jobshop/ft06")
    assert fetch(["jobshop/ft06"]) == [path]
    assert (
        hashlib.sha256(data_path("jobshop/ft06").read_bytes()).hexdigest()
        == find("jobshop/ft06").sha256
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, "the server answers 404"),
        (b"x" * 100_000, "more than the [0-9]+ bytes of jobshop/ft06.txt; nothing was kept"),
        (CONTENT, "SHA-256 is .*, that of jobshop/ft06.txt is .*; nothing was kept"),
        (CONTENT[:5], "SHA-256 is|cannot fetch"),
    ],
)
def test_what_arrives_wrong_is_not_kept(
    body: bytes | None, message: str, server: Server, tmp_path: Path
) -> None:
    if body is not None:
        server.files[served("jobshop/ft06")] = body
    with pytest.raises(DataError, match=message):
        fetch(["jobshop/ft06"])
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPTBENCH_CACHE", str(tmp_path))
    monkeypatch.delenv("OPTBENCH_DATA", raising=False)
    monkeypatch.setenv(
        "OPTBENCH_DATA_URL", "http://127.0.0.1:9/{repository}/{commit}/{path}"
    )  # nothing listens there
    with pytest.raises(
        DataError,
        match=r"cannot fetch jobshop/ft06.txt from http://127.*refused.*"
        r"Offline\? Set OPTBENCH_DATA",
    ):
        fetch(["jobshop/ft06"])
    monkeypatch.setenv("OPTBENCH_DATA_URL", "no address")
    with pytest.raises(
        DataError, match=r"cannot fetch jobshop/ft06.txt from no address: unknown url type"
    ):
        fetch(["jobshop/ft06"])


def test_extracted_files_cannot_be_fetched(server: Server) -> None:
    with pytest.raises(
        DataError,
        match=r"jobshop/bounds.json: it was extracted from its source and cannot be fetched",
    ):
        fetch(["jobshop/bounds.json"])
    assert [file.path for file in unfetchable(["jobshop"])] == ["jobshop/bounds.json"]
    assert published(["jobshop/ft06"]) == {}, "no table at hand"


def test_the_data_folder_comes_first(
    server: Server, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files[served("jobshop/ft06")] = (data_dir / "jobshop" / "ft06.txt").read_bytes()
    fetch(["jobshop/ft06"])
    own = tmp_path / "own"
    (own / "jobshop").mkdir(parents=True)
    monkeypatch.setenv("OPTBENCH_DATA", str(own))
    assert data_path("jobshop/ft06").is_relative_to(tmp_path / "cache"), (
        "what the folder lacks may be in the cache"
    )
    (own / "jobshop" / "bounds.json").write_text(json.dumps({}))
    assert published(["jobshop/ft06"]) == {}, (
        "a table that is not the published one is not believed"
    )
    monkeypatch.setenv("OPTBENCH_DATA", str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"OPTBENCH_DATA is '.*gone', which is no folder"):
        data_path("jobshop/ft06")


def test_names() -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown data file 'jobshop/ft6'; did you mean 'jobshop/ft06'\?"
    ):
        find("jobshop/ft6")
    assert find("planetoid/ind.cora.test.index").path == "planetoid/ind.cora.test.index"
    assert {"jobshop", "flexible-jobshop", "rcpsp"} <= data_sets().keys()
    assert [
        len(data_sets()[name].files) - 1 for name in ("jobshop", "flexible-jobshop", "rcpsp")
    ] == [42, 44, 85]
