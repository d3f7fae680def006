"""What a network does beside what it is fed: the same inputs, prices and dual without the network,
as options of the policies.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import optbench as ob
from optbench.errors import FileFormatError, ParameterError, UnsupportedError
from optbench.learn.sites.actor_training import SiteTrainer
from optbench.learn.sites.checkpoints import read_checkpoint, write_checkpoint
from optbench.learn.sites.mean_duals import DualTable, read_tables, write_tables
from optbench.learn.sites.parallel_weeks import SiteFleet
from optbench.learn.sites.pilot import random_network
from optbench.learn.sites.training_settings import SiteTraining
from optbench.model.instance import Instance
from optbench.model.streams import with_stream
from optbench.plugins.discovery import load_problem, load_solver
from optbench.plugins.policy import Policy
from optbench.sim.kernel.sites.view import OPTION_FEATURES, SITE_FEATURES, G, O, S
from optbench.sim.sites.plans import board_of
from optbench.sim.sites.sites import grid_of


def played(instance: Instance, solver: str, **params: str) -> ob.Schedule:
    policy = load_solver(solver, params)[1]
    assert isinstance(policy, Policy)
    schedule = policy.play(instance, np.random.default_rng(0)).schedule
    assert schedule is not None
    return schedule


def two_sites() -> Instance:
    """Cheap: one device, 2 s for 10 J a unit. Dear: two devices, 1 s for 30 J."""
    m = ob.Model("two sites", tick_s=1.0)
    cheap, dear = m.pool("cheap", count=1), m.pool("dear", count=2)
    kind = m.kind(modes=[m.mode(cheap, 2.0, energy_j=10.0), m.mode(dear, 1.0, energy_j=30.0)])
    m.tasks([1.0, 1.0], kind=kind, release_s=[0.0, 0.5])
    m.minimize(energy_j=1.0)
    return with_stream(m.build())


@pytest.mark.parametrize(("price_w", "modes"), [("5", [0, 1]), ("19", [0, 1]), ("21", [1, 1])])
def test_without_the_network_the_least_cost_is_taken(price_w: str, modes: list[int]) -> None:
    """10 + 2 μ against 30 + μ: cheap below μ = 20 W. The second job finds the cheap device taken
    below that.
    """
    schedule = played(two_sites(), "chsac_af", price_w=price_w, network="no")
    assert schedule.mode[np.argsort(schedule.task)].tolist() == modes


def test_without_the_network_a_budget_is_kept_by_the_same_dual() -> None:
    instance = load_problem("geo_dc:days=0.4").instance(500)
    slow, fast = (
        played(instance, "chsac_af", latency_budget_s=b, network="no") for b in ("3000", "800")
    )
    time = [instance.modes.time_per_unit_s[each.mode].mean() for each in (slow, fast)]
    assert time[0] > 1.5 * time[1]


def test_any_checkpoint_can_be_played_without_its_network(tmp_path: Path) -> None:
    """Where the network does not fit the sites its prices still do."""
    grid = grid_of(load_problem("geo_dc:days=0.01").instance(0))
    shipped = read_checkpoint(Path(__file__).parents[2] / "solvers" / "_chsac_af.safetensors")
    flat = random_network(grid, np.random.default_rng(0), "flat", 8)
    shipped = type(shipped)(
        flat, 8, grid.widest, shipped.mean_units, shipped.budgets_s, shipped.prices_w
    )
    write_checkpoint(tmp_path / "flat.safetensors", shipped)
    given = {"checkpoint": str(tmp_path / "flat.safetensors")}
    assert load_solver("chsac_af", given)[1].refuse(two_sites()) is not None
    assert load_solver("chsac_af", {**given, "network": "no"})[1].refuse(two_sites()) is None


def test_the_papers_way_is_shown_no_regrets() -> None:
    """Regrets are the answer to a part of the problem; as printed a state is what the sites are
    like.
    """
    assert SiteTraining(mode="paper").full.seen == "sites" and SiteTraining().full.seen == "regrets"
    rows = {}
    for seen in ("regrets", "sites"):
        fleet = SiteFleet([two_sites()], seen=seen)
        fleet.set_price(0, 4.0)
        pilot = random_network(grid_of(two_sites()), np.random.default_rng(0))
        rows[seen] = fleet.roll(pilot, 1, np.random.default_rng(1)).rows[0, 0]
    site, option = SITE_FEATURES.index("regret"), OPTION_FEATURES.index("regret")
    assert rows["regrets"][G + S + site] > 0 and rows["regrets"][G + 2 * S + O + option] > 0
    changed = np.flatnonzero(rows["regrets"] != rows["sites"])
    regrets = {G + p * S + site for p in range(2)}
    regrets |= {G + 2 * S + a * O + option + k for a in range(2 * 1) for k in (0, 1)}
    assert len(changed) and set(changed.tolist()) <= regrets and (rows["sites"][changed] == 0).all()


def test_what_is_seen_is_kept_in_the_checkpoint(tmp_path: Path) -> None:
    quick = SiteTraining(
        mode="paper", decisions=200, envs=2, steps=20, updates=1, hidden=8, calibrate=0
    )
    instances = [load_problem("geo_dc:days=0.05").instance(1000)]
    trainer = SiteTrainer(instances, quick)
    assert trainer.pilot.seen == "sites"
    from optbench.learn.sites.checkpoints import SiteCheckpoint

    sizes = trainer.fleet.sizes
    made = SiteCheckpoint(
        trainer.pilot,
        sizes.pools,
        sizes.widest,
        1.0,
        np.ones(1),
        np.ones(1),
    )
    write_checkpoint(tmp_path / "paper.safetensors", made)
    assert read_checkpoint(tmp_path / "paper.safetensors").pilot.seen == "sites"


def test_the_temperature_of_the_papers_way_can_follow_its_entropy() -> None:
    """At the networks' rate 3,000 steps change its logarithm by less than one: it could not leave
    where it began.
    """
    full = SiteTraining(mode="paper").full
    assert full.temperature == 1.0 and full.temperature_rate == 1e-2
    corrected = SiteTraining().full
    assert (
        corrected.temperature == pytest.approx(np.exp(-3.0))
        and corrected.temperature_rate == corrected.learning_rate
    )


DAY = "geo_dc:days=2,shrink=0.25,rate=0.005,drain=yes,minimize=cost,local_hours=yes,sojourn_s=4h"


def test_the_booking_planner_alone_and_with_a_table_of_mean_duals() -> None:
    """Both are played by the planner of learned_prices; neither asks the network."""
    instance = load_problem(DAY).instance(500)
    plans = {
        prices: played(instance, "learned_prices", prices=prices)
        for prices in ("network", "none", "table")
    }
    starts = {prices: each.start[np.argsort(each.task)] for prices, each in plans.items()}
    assert not np.array_equal(starts["network"], starts["none"])
    assert not np.array_equal(starts["network"], starts["table"])
    with pytest.raises(ParameterError, match="prices is 'duals'"):
        load_solver("learned_prices:prices=duals")


def test_a_table_is_of_its_sites_and_hours() -> None:
    other = load_problem(
        "geo_dc:days=3,shrink=0.1,rate=0.002,drain=yes,minimize=cost,local_hours=yes"
    ).instance(500)
    with pytest.raises(UnsupportedError, match="no table of prices fits"):
        ob.solve(other, "learned_prices:prices=table")


def test_tables_survive_a_file_and_a_broken_one_is_named(tmp_path: Path) -> None:
    board = board_of(load_problem(DAY).instance(500))
    table = DualTable(
        "table",
        "x",
        tuple(board.instance.pools.names),
        np.ones_like(board.rate),
        np.array([-4.0, 0.0, -1.5]),
    )
    write_tables(tmp_path / "t.json", [table], {"about": "by hand"})
    (again,) = read_tables(tmp_path / "t.json")
    assert again.fits(board) and np.array_equal(again.duals, table.duals)
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(FileFormatError, match=r"bad\.json: not a file of mean duals"):
        read_tables(tmp_path / "bad.json")
