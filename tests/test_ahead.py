"""The set-up step that compiles ahead, in a process of its own with an empty cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_kernels_are_compiled_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    imports = "from optbench.bounds import destructive as d; from optbench.sim import primal as p, sampling as s; "
    imports += "from optbench.views.env import warm as w; import optbench.plugins.solvers._lp_warm as g; "
    imports += "from optbench.learn import warm as l"
    asks = f"{imports}; print(*(part.is_compiled() for part in (d, p, s, w, g, l)))"

    def run(*arguments: str) -> str:
        return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True).stdout

    assert run("-c", asks).split() == ["False"] * 6
    assert run("-m", "optbench.ahead").startswith("compiled kernels are ready")
    assert run("-c", asks).split() == ["True"] * 6
