"""What a process that is confined can still do, tried in a child."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from optbench.sandbox import capabilities, landlock, seccomp

PROGRAM = """
import os, sys
from pathlib import Path
from optbench.sandbox import capabilities, landlock, seccomp
inside, outside = Path(sys.argv[1]), Path(sys.argv[2])
CONFINE
def can(work):
    try:
        work()
    except OSError as error:
        return error.strerror
    return "done"
"""
WITH_LANDLOCK = pytest.mark.skipif(
    landlock.landlock_version() < 1, reason="this kernel has no Landlock"
)
WITH_SECCOMP = pytest.mark.skipif(not seccomp.is_available(), reason="no filter for this machine")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_text("content")
    return inside, outside


def run(folders: tuple[Path, Path], confine: str, *lines: str) -> list[str]:
    program = PROGRAM.replace("CONFINE", confine) + "\n".join(lines)
    words = [sys.executable, "-c", program, *map(str, folders)]
    return subprocess.run(
        words, capture_output=True, text=True, check=True, timeout=60
    ).stdout.split("\n")[:-1]


@WITH_LANDLOCK
def test_writing_ends_at_the_folder_and_reading_does_not(folders: tuple[Path, Path]) -> None:
    said = run(
        folders,
        "landlock.write_only_beneath([inside])",
        "print(can(lambda: (outside / 'file').read_text()))",
        "print(can(lambda: (outside / 'file').write_text('x')))",
        "print(can(lambda: os.truncate(outside / 'file', 0)))",
        "print(can(lambda: (outside / 'file').unlink()))",
        "print(can(lambda: (outside / 'new').mkdir()))",
        "print(can(lambda: (inside / 'new').mkdir()))",
        "print(can(lambda: (inside / 'file').write_text('y')))",
        "print(can(lambda: (inside / 'file').rename(inside / 'new' / 'file')))",
        "print(can(lambda: open('/dev/null', 'w').write('z')))",
    )
    denied = "Permission denied"
    assert said == ["done", *[denied] * 4, *["done"] * 4]
    assert (folders[1] / "file").read_text() == "content"


@pytest.mark.skipif(
    landlock.landlock_version() < 6, reason="this kernel's Landlock knows nothing of signals"
)
def test_signals_stay_inside(folders: tuple[Path, Path]) -> None:
    said = run(
        folders,
        "landlock.write_only_beneath([inside])",
        "print(can(lambda: os.kill(os.getppid(), 0)))",
        "child = os.fork() or os.execvp('sleep', ['sleep', '60'])",
        "print(can(lambda: os.kill(child, 9)), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
    )
    assert said == ["Operation not permitted", "done -9"]


@WITH_SECCOMP
def test_attributes_stay_as_they_are(folders: tuple[Path, Path]) -> None:
    before = [(folder / "file").stat() for folder in folders]
    said = run(
        folders,
        "import resource, shutil; seccomp.install_filter()",
        "for folder in (inside, outside):",
        (
            "    print(can(lambda: os.chmod(folder / 'file', 0)), can(lambda: os.utime(folder / "
            "'file', (0, 0))))"
        ),
        "    print(can(lambda: os.chown(folder / 'file', 1, 1)))",
        "print(can(lambda: shutil.copy(outside / 'file', inside / 'copied')))",
        "print(can(lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (9, 9))))",
        "print(can(lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))))",
    )
    assert said == [
        "done done",
        "done",
        "done done",
        "done",
        "done",
        "Operation not permitted",
        "done",
    ]
    after = [(folder / "file").stat() for folder in folders]
    assert [(each.st_mode, each.st_uid, each.st_mtime) for each in after] == [
        (b.st_mode, b.st_uid, b.st_mtime) for b in before
    ]
    assert (folders[0] / "copied").read_text() == "content"


@WITH_SECCOMP
def test_memory_that_would_outlive_a_cell_cannot_be_had(folders: tuple[Path, Path]) -> None:
    said = run(
        folders,
        "from optbench.sandbox.system_calls import LIBC, last_error",
        "seccomp.install_filter()",
        (
            "for made in (LIBC.shmget(0, 4096, 0o1600), LIBC.semget(0, 1, 0o1600), LIBC.msgget(0, "
            "0o1600)):"
        ),
        "    print(made, last_error().strerror)",
    )
    assert said == ["-1 Operation not permitted"] * 3


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root has rights to give up"
)
def test_root_gives_up_its_rights_for_good(folders: tuple[Path, Path]) -> None:
    said = run(
        folders,
        "import resource, subprocess, time",
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
        "capabilities.drop_capabilities()",
        "print(can(lambda: time.clock_settime(time.CLOCK_REALTIME, time.time())))",
        "print(can(lambda: os.nice(-5)))",
        "try: resource.setrlimit(resource.RLIMIT_CORE, (9, 9))",
        "except ValueError as error: print(error)",
        (
            "print(subprocess.run(['grep', 'CapEff', '/proc/self/status'], capture_output=True, "
            "text=True).stdout.split()[1])"
        ),
        "print(can(lambda: (outside / 'file').read_text()))",
    )
    refused = ["Operation not permitted"] * 2
    assert said == [
        *refused,
        "not allowed to raise maximum limit",
        f"{capabilities.KEPT:016x}",
        "done",
    ]


@WITH_LANDLOCK
def test_older_versions_are_asked_for_what_they_know(folders: tuple[Path, Path]) -> None:
    """A kernel refuses rights that it does not know; one that knows more takes the fewer."""
    for version in range(1, landlock.landlock_version() + 1):
        said = run(
            folders,
            f"landlock.landlock_version = lambda: {version}; landlock.write_only_beneath([inside])",
            "print(can(lambda: (outside / 'new').mkdir()))",
        )
        assert said == ["Permission denied"], version


def test_the_version_is_a_number() -> None:
    assert landlock.landlock_version() >= 0 and (
        sys.platform == "linux" or not landlock.landlock_version()
    )
    assert os.path.exists(landlock.DEVICES[0])
