"""The wheel of this tree, and a command installed from it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from benchmarks.wheel import build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command ``optbench`` of an environment that borrows only the libraries of this one."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = (venv / "lib").glob("python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    command = venv / "bin" / "optbench"
    command.write_text(
        f"#!{venv / 'bin' / 'python'}\nimport sys\nfrom optbench.cli.main import "
        "main\nsys.exit(main())\n"
    )
    command.chmod(0o755)
    return command
