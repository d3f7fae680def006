"""Regret by hand: excess energy after the warm-up, until the later decision has no job left."""

from __future__ import annotations

import pytest

from optbench.shapes.colocation.colocation_shape import ColocationShape
from optbench.shapes.colocation.regret import energies_after_warm_up, excess_energy, warm_epoch
from tests.shapes.colocation.two_gpus import FAST, HEAVY, SLOW, cluster, rows

# Six jobs of 100 units, which arrive in epochs 0, 0, 2, 2, 2 and 2; the second is ⌈6 / 5⌉.
ARRIVALS = (0, 0, 200, 200, 200, 200)
DATA = cluster([(HEAVY, at, 0.5, 100, 0) for at in ARRIVALS], horizon_epochs=12)
# All on slow GPUs, two at a time: 100 s at 35 W beyond sleep each, until the end of epoch 4.
SLOWLY = rows(*((epoch, SLOW, job) for job, epoch in enumerate((0, 0, 2, 2, 3, 3))))
# The last job on the fast GPU, 50 s at 70 W: the same energy, and the same epoch.
MIXED = rows(*((epoch, SLOW, job) for job, epoch in enumerate((0, 0, 2, 2, 3))), (3, FAST, 5))
# The last job an epoch later.
LATE = rows(*((epoch, SLOW, job) for job, epoch in enumerate((0, 0, 2, 2, 3, 4))))
ASLEEP_J = 20 * 100.0  # sleep of all GPUs in an epoch


def test_the_warm_up_ends_with_the_second_job() -> None:
    assert warm_epoch(DATA) == 0
    later = cluster([(HEAVY, at, 0.5, 100, 0) for at in (0, 200, 200, 200, 200, 200)])
    assert warm_epoch(later) == 2


def test_the_same_energy_is_no_regret() -> None:
    assert excess_energy(DATA, SLOWLY, SLOWLY) == 0.0
    assert excess_energy(DATA, MIXED, SLOWLY) == pytest.approx(0.0)


def test_both_are_counted_until_the_later_one_has_ended() -> None:
    # Six jobs at 3,500 J, and five epochs of sleep for both, since LATE ends after epoch 4.
    expected = 6 * 3500 + 5 * ASLEEP_J
    assert energies_after_warm_up(DATA, (SLOWLY, LATE)) == pytest.approx([expected, expected])


def test_pictures_are_drawn() -> None:
    instance = ColocationShape().instance("test", DATA)
    found = instance.shape.pictures(instance, MIXED)
    assert list(found) == ["GPUs in use by combination", "Jobs", "Energy"]
    assert all(each.startswith("<svg") and each.endswith("</svg>") for each in found.values())
    assert "slow alone" in found["GPUs in use by combination"]
    assert "gang" not in found["GPUs in use by combination"]
