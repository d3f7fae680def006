"""Devices on cores: speeds on a core add up to at most 1."""

from __future__ import annotations

import pytest

from optbench.errors import UnsupportedError
from optbench.gnn.runtime.core_placement import cores_of_devices


def test_unequal_devices_share_cores() -> None:
    # 4 : 2 : 1 is 1, 1/2, 1/4: the first has core 5 alone, the others share core 7.
    assert cores_of_devices((1.0, 0.5, 0.25), (5, 7)) == (5, 7, 7)
    assert cores_of_devices((0.25, 1.0, 0.5), (5, 7)) == (7, 5, 7)


def test_placement_goes_back() -> None:
    # By falling speed 0.4 + 0.4 fills a core and leaves 0.3 + 0.3 + 0.3 and 0.3 nowhere: the only
    # way is 0.4 + 0.3 + 0.3 twice.
    cores = cores_of_devices((0.4, 0.4, 0.3, 0.3, 0.3, 0.3), (0, 1))
    assert sorted(cores) == [0, 0, 0, 1, 1, 1] and cores[0] != cores[1]


def test_too_many_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"3 devices of relative speeds 1, 1, 1 .* 2 cores"):
        cores_of_devices((1.0, 1.0, 1.0), (0, 1))
    # The sum 2 fits two cores, no placement does.
    with pytest.raises(UnsupportedError, match="add up to at most 1"):
        cores_of_devices((0.6, 0.7, 0.7), (0, 1))
