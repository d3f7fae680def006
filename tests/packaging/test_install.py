"""What `make` says on a machine where something is missing; nothing is downloaded here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHELL = shutil.which("sh") or "/bin/sh"
# A Python of today whose `ensurepip` Debian has put into another package.
WITHOUT_ENSUREPIP = (
    f'#!{SHELL}\ncase "$2" in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"\n'
)
OLD = f"#!{SHELL}\nexit 1\n"


def install(folder: Path, *words: str, pythons: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the installer where the path holds these programmes and the few tools it needs."""
    path = folder / "bin"
    path.mkdir()
    for tool in ("basename", "date", "dirname", "env"):
        (path / tool).symlink_to(str(shutil.which(tool)))
    for name, text in pythons.items():
        (path / name).write_text(text)
        (path / name).chmod(0o755)
    command = [SHELL, str(ROOT / ".ci" / "install"), ".venv", "torch", *words]
    return subprocess.run(
        command, cwd=folder, env={"PATH": str(path)}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("pythons", "words", "message"),
    [
        ({}, (), "no Python of at least 3.11 found. Install one"),
        ({"python3": OLD}, (), "make PYTHON=/path/to/python3.12"),
        ({"python3.11": WITHOUT_ENSUREPIP}, (), "apt install python3.11-venv"),
        ({"python3": OLD}, ("python3",), "PYTHON=python3 is no Python of at least 3.11"),
    ],
)
def test_what_is_missing_comes_with_its_remedy(
    tmp_path: Path, pythons: dict[str, str], words: tuple[str, ...], message: str
) -> None:
    done = install(tmp_path, *words, pythons=pythons)
    assert done.returncode == 1 and message in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "precious").touch()
    done = install(tmp_path, pythons={"python3.11": WITHOUT_ENSUREPIP})
    assert done.returncode == 1 and ".venv is there and is no virtual environment" in done.stderr
    assert (tmp_path / ".venv" / "precious").exists()
