"""The devices that CUDA_VISIBLE_DEVICES gives."""

from __future__ import annotations

import pytest

from optbench.hardware.visible_devices import devices_given


@pytest.mark.parametrize(
    ("value", "given"),
    [
        ("0", ("0",)),
        (" 2, GPU-1a ", ("2", "GPU-1a")),
        ("", ()),
        ("-1", ()),
        ("1,-1,2", ("1",)),
        ("NoDevFiles", ()),
        ("MIG-77", ("MIG-77",)),
    ],
)
def test_devices_by_index_or_uuid(value: str, given: tuple[str, ...]) -> None:
    assert devices_given({"CUDA_VISIBLE_DEVICES": value}) == given


def test_none_given_by_name_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices_given({}) is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert devices_given() == ("3",)
