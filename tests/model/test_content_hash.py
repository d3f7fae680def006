"""The hash of an instance (fault 8 of issue 11): every number counts, and nothing of how it was
stored or declared does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optbench as ob
from optbench.model.content_hash import NAMES, add_to_digest
from optbench.model.files.instance_json import instance_from_dict, instance_to_dict
from optbench.model.instance import Instance, Places
from optbench.model.objective import Objective
from optbench.model.streams import with_stream
from tests.model.full_instance import full_instance
from tests.reference.random_instances import tiny_with_ways
from tests.sample_files.inputs import cluster

Path = tuple[str, ...]


FULL = full_instance()
# What a reader sees and no number depends on.
LEFT_OUT = {("name",), ("problem",)}


def columns(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every field of every part, down to arrays and numbers."""
    for field in fields(value):
        below = getattr(value, field.name)
        here = (*path, field.name)
        if is_dataclass(below) and not isinstance(below, Objective):
            yield from columns(below, here)
        elif field.name not in NAMES and here not in LEFT_OUT:
            yield here


COLUMNS = sorted(columns(FULL))


def at(value: Any, path: Path) -> Any:
    for name in path:
        value = getattr(value, name)
    return value


def put(value: Any, path: Path, new: Any) -> Any:
    """The instance with another column."""
    if not path:
        return new
    return replace(value, **{path[0]: put(getattr(value, path[0]), path[1:], new)})


def changed(value: Any) -> Any:
    """Another value, as near as can be."""
    if isinstance(value, (bool, np.bool_)):
        return not value
    if isinstance(value, (int, np.integer)):
        return value + 1
    return 1.0 if np.isnan(value) or np.isinf(value) else np.nextafter(value, np.inf)


def variants(value: Any) -> Iterator[Any]:
    """A column with one entry changed, for each entry; one entry more, and one less."""
    if isinstance(value, np.ndarray):
        for where in np.ndindex(value.shape):
            out = value.copy()
            out[where] = changed(value[where].item())
            yield out
        yield value[:-1]
        yield np.concatenate((value, value[-1:]))
    elif isinstance(value, dict):
        for key in value:
            yield value | {key: changed(value[key])}
        yield value | {"makespan": 5.0}
        yield {}
    elif isinstance(value, Objective):
        (first, second) = value.levels
        yield Objective((second, first))
        yield Objective((first,))
        yield Objective((first, (*second[:-1], (second[-1][0], changed(second[-1][1])))))
        yield Objective((first, (*second[:-1], ("carbon_g", second[-1][1]))))
    else:
        yield changed(value)
        yield None


def test_the_full_instance_has_something_everywhere() -> None:
    parts = {path[0] for path in COLUMNS}
    assert {
        "tasks",
        "edges",
        "places",
        "pools",
        "modes",
        "links",
        "limits",
        "tariffs",
        "stream",
        "cooling",
        "horizon",
        "tick_s",
    } <= parts
    assert ("stream", "outages", "announced") in COLUMNS and ("stream", "opens") in COLUMNS
    assert all(
        len(np.atleast_1d(at(FULL, path)))
        for path in COLUMNS
        if isinstance(at(FULL, path), np.ndarray)
    )


@pytest.mark.parametrize("path", COLUMNS, ids=".".join)
def test_every_number_of_every_column_is_in_the_hash(path: Path) -> None:
    # Columns of one part must be of one length where rows are sorted, which is a matter of
    # validation, not of the hash.
    ragged = "req" in path[-1] or path[-2:-1] in [
        ("edges",),
        ("limits",),
        ("outages",),
        ("cooling",),
    ]
    seen = {FULL.hash}
    for count, column in enumerate(variants(at(FULL, path)), 2):
        if ragged and isinstance(column, np.ndarray) and len(column) != len(at(FULL, path)):
            seen.add(f"left out {count}")
            continue
        if column is None and path in (("tick_s",), ("preemptive",), ("objective",)):
            seen.add(f"left out {count}")
            continue
        seen.add(put(FULL, path, column).hash)
        assert len(seen) == count, column


@pytest.mark.parametrize("part", ["tariffs", "stream", "cooling"])
def test_a_part_that_is_missing_is_content(part: str) -> None:
    assert put(FULL, (part,), None).hash != FULL.hash


class Recorder:
    """In place of a digest: the bytes that it is fed."""

    def __init__(self) -> None:
        self.fed = b""

    def update(self, more: bytes) -> None:
        self.fed += more


ONE = np.array([1.0], dtype="<f8").tobytes()
NAN = np.array([np.nan], dtype="<f8").tobytes()


@pytest.mark.parametrize(
    ("value", "fed"),
    [
        # A horizon that is missing differs from one that is not a number.
        (None, b"x: none;"),
        (np.nan, b"x: ();" + NAN),
        (1, b"x: ();" + ONE),
        (np.array([[1, 1]]), b"x: (1, 2);" + ONE + ONE),
        ({"b": 1, "a": None}, b"x: 2 entries;a: none;b: ();" + ONE),
    ],
)
def test_the_canonical_form_by_hand(value: Any, fed: bytes) -> None:
    digest = Recorder()
    add_to_digest(digest, "x", value)
    assert digest.fed == fed


def test_a_part_is_its_columns_in_alphabetical_order() -> None:
    digest = Recorder()
    add_to_digest(digest, "places", Places(("cluster",), np.array([1])))
    assert digest.fed == b"places: part;parent: (1,);" + ONE


def test_equal_numbers_in_another_column_are_another_instance() -> None:
    pools = FULL.pools
    assert (
        replace(FULL, pools=replace(pools, idle_w=pools.sleep_w, sleep_w=pools.idle_w)).hash
        != FULL.hash
    )
    edges = FULL.edges
    assert (
        replace(FULL, edges=replace(edges, source=edges.target, target=edges.source)).hash
        != FULL.hash
    )


@pytest.mark.parametrize("opens", [0, 1, 100, np.int64(100), None])
def test_a_whole_opening_counts(opens: Any) -> None:
    """100 and 200 had one hash: by the bank of one, the other was "optimal"."""

    def at_opening(value: Any) -> str:
        return str(put(FULL, ("stream", "opens"), value).hash)

    assert at_opening(opens) != at_opening(200)
    assert len({at_opening(value) for value in (None, 0, 100, 200)}) == 4
    assert (
        at_opening(100)
        == at_opening(100.0)
        == at_opening(np.int64(100))
        == at_opening(np.float64(100))
    )


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint16])
def test_the_type_of_numbers_does_not_count(dtype: Any) -> None:
    """Whatever holds every entry exactly, also as a column of another byte order or stride."""
    for path in COLUMNS:
        value = at(FULL, path)
        if isinstance(value, np.ndarray):
            with np.errstate(invalid="ignore"):
                other = value.astype(dtype)
            if (other == value).all():
                assert put(FULL, path, other).hash == FULL.hash, path
            spread = np.repeat(value, 2, axis=-1)[..., ::2]
            assert (
                put(FULL, path, spread).hash
                == put(FULL, path, np.asfortranarray(value)).hash
                == FULL.hash
            ), path
    swapped = FULL.tasks.units.astype(FULL.tasks.units.dtype.newbyteorder())
    assert put(FULL, ("tasks", "units"), swapped).hash == FULL.hash


def test_scalars_of_any_type_and_negative_zeros_are_the_same() -> None:
    assert FULL.horizon is not None
    for horizon in (float(FULL.horizon), np.int32(FULL.horizon), np.float64(FULL.horizon)):
        assert put(FULL, ("horizon",), horizon).hash == FULL.hash
    never: Any = np.bool_(False)
    assert replace(FULL, tick_s=np.float64(FULL.tick_s), preemptive=never).hash == FULL.hash
    assert replace(FULL, tick_s=2).hash == replace(FULL, tick_s=2.0).hash
    latency_s = FULL.links.latency_s
    assert (
        put(FULL, ("links", "latency_s"), np.where(latency_s == 0, -0.0, latency_s)).hash
        == FULL.hash
    )
    limits = replace(FULL.limits, metric_max={"energy_j": 10_000_000})
    assert replace(FULL, limits=limits).hash == FULL.hash


def test_any_nan_is_no_clock() -> None:
    clock = FULL.modes.clock.copy()
    odd = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)[0]
    clock[np.isnan(clock)] = odd
    assert np.isnan(odd) and put(FULL, ("modes", "clock"), clock).hash == FULL.hash


@pytest.mark.parametrize("part", ["edges", "limits", "outages"])
def test_the_order_of_rows_that_are_a_set_does_not_count(part: str) -> None:
    base = replace(
        FULL,
        limits=replace(FULL.limits, cap_place=np.array([1, 0, 1]), cap_w=np.array([5e3, 9e3, 7e3])),
    )
    path: Path = ("stream", "outages") if part == "outages" else (part,)
    rows = at(base, path)
    names = [
        field.name for field in fields(rows) if isinstance(getattr(rows, field.name), np.ndarray)
    ]
    for order in ([2, 0, 1], [1, 0, 2], [2, 1, 0]):
        shuffled = replace(rows, **{name: getattr(rows, name)[order] for name in names})
        assert put(base, path, shuffled).hash == base.hash
    twisted = replace(rows, **{names[0]: getattr(rows, names[0])[[1, 0, 2]]})
    same_rows = (getattr(twisted, names[0]) == getattr(rows, names[0])).all()
    assert (put(base, path, twisted).hash == base.hash) == same_rows


def test_the_order_of_metrics_and_limits_does_not_count() -> None:
    two = [
        FULL.with_limits(**limits)
        for limits in ({"makespan": 9.0, "cost_usd": 5.0}, {"cost_usd": 5.0, "makespan": 9.0})
    ]
    assert two[0].hash == two[1].hash
    weights = {"energy_j": 1, "makespan": 2.0}, {"makespan": 2, "energy_j": 1.0}
    sums = [FULL.with_objective(Objective.weighted(each)) for each in weights]
    assert sums[0].hash == sums[1].hash
    assert FULL.with_objective(sums[0].objective).physics_hash == FULL.physics_hash


def test_the_order_of_further_pools_of_a_mode_does_not_count() -> None:
    """The first pool is the primary one; of the others only the numbers of devices matter."""

    def built(order: tuple[int, ...]) -> Instance:
        m = ob.Model()
        pools = [m.pool(name, count=3) for name in "abc"]
        m.task(modes=[m.mode({pools[p]: p + 1 for p in order}, time_s=1)])
        m.minimize(makespan=1.0)
        return m.build()

    assert built((0, 1, 2)).hash == built((0, 2, 1)).hash != built((1, 0, 2)).hash


@pytest.mark.parametrize("before", [0, 1])
def test_further_pools_belong_to_their_mode(before: int) -> None:
    """Two modes differ in their second pool only: their order is content like that of all modes."""

    def built(second: tuple[int, int]) -> Instance:
        m = ob.Model()
        a, *others = (m.pool(name) for name in "abc")
        modes = [m.mode(a, time_s=2)] * before
        modes += [m.mode({a: 1, others[p]: 1}, time_s=1) for p in second]
        m.task(modes=modes)
        m.minimize(makespan=1.0)
        return m.build()

    assert built((0, 1)).hash != built((1, 0)).hash


def test_the_way_it_was_built_does_not_count() -> None:
    """One by one and as arrays; edges, links and limits in another order; seconds as whole numbers
    and as floats.
    """

    def built(many: bool) -> Instance:
        m = ob.Model("one" if many else "two", tick_s=0.5, horizon_s=100 if many else 100.0)
        a, b = m.pool("a", count=2, idle_w=5), m.pool("b" if many else "c", idle_w=5.0)
        kind = m.kind(modes=[m.mode(a, 1), m.mode(b, 2.0)])
        if many:
            m.link(a, b, bandwidth_gbit_s=8)
            ids = list(m.tasks([1, 2, 3], kind=kind, release_s=[0, 1, 2]))
            m.precede(ids[0], ids[2], 1)
            m.precede(ids[0], ids[1])
            m.limit(energy_j=5, power_w=100)
        else:
            ids = [
                m.task(f"x{i}", kind=kind, units=float(i + 1), release_s=float(i)) for i in range(3)
            ]
            m.precede(ids[0], ids[1])
            m.precede(ids[0], ids[2], 1.0)
            m.limit(power_w=100.0)
            m.limit(energy_j=5.0)
            m.link(b, a, bandwidth_gbit_s=8)
        m.minimize(energy_j=1 if many else 1.0)
        return m.build()

    assert built(many=True).hash == built(many=False).hash


def test_json_keeps_the_hash() -> None:
    for instance in (
        FULL,
        put(FULL, ("stream", "opens"), None),
        put(FULL, ("stream", "opens"), np.int64(7)),
        cluster(),
    ):
        again = instance_from_dict(json.loads(json.dumps(instance_to_dict(instance))))
        assert again.hash == instance.hash


@given(st.integers(0, 100_000))
def test_on_random_instances(seed: int) -> None:
    """A round trip keeps the hash, one number changed anywhere changes it."""
    instance, rng = tiny_with_ways(seed), np.random.default_rng(seed)
    again = instance_from_dict(json.loads(json.dumps(instance_to_dict(instance))))
    assert again.hash == instance.hash
    arrays = [
        path
        for path in columns(instance)
        if isinstance(at(instance, path), np.ndarray) and at(instance, path).size
    ]
    for path in (arrays[k] for k in rng.choice(len(arrays), 6, replace=False)):
        value = at(instance, path)
        where = tuple(rng.integers(0, size) for size in value.shape)
        other = value.copy()
        other[where] = changed(value[where].item())
        assert put(instance, path, other).hash != instance.hash, path


def test_two_openings_are_two_instances() -> None:
    """The case of the issue: what opens at 0 and at 900 costs 30,700 J and 10,900 J."""

    def built(opens: int) -> Instance:
        m = ob.Model(horizon_s=1000)
        m.task(modes=[m.mode(m.pool("gpu", idle_w=20), time_s=10, energy_j=9000)], release_s=900)
        m.minimize(energy_j=1.0)
        return with_stream(m.build(), opens=opens)

    assert built(0).hash != built(900).hash
