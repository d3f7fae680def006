"""The stated watts of a busy core, and what is refused."""

from __future__ import annotations

import pytest

from optbench.errors import ParameterError
from optbench.execute.local import LocalExecutor
from optbench.hardware.cpu_energy.assumed_power import assumed_w


def test_the_figure_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPTBENCH_CPU_WATTS", raising=False)
    assert assumed_w() == 12.0
    monkeypatch.setenv("OPTBENCH_CPU_WATTS", "4.5")
    assert assumed_w() == 4.5


@pytest.mark.parametrize("given", ["many", "0", "-3", "inf", "nan"])
def test_what_is_no_power_is_refused_before_any_cell(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTBENCH_CPU_WATTS", given)
    with pytest.raises(ParameterError, match=f"OPTBENCH_CPU_WATTS is '{given}'"):
        LocalExecutor()
