"""What a network sees of a small stream, by hand; compiled networks against torch; random weights
fail the gate.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import optbench as ob
from optbench.bounds.streams.stream_bound import path_metrics
from optbench.errors import FileFormatError, ParameterError
from optbench.learn.sites.checkpoints import SiteCheckpoint, read_checkpoint, write_checkpoint
from optbench.learn.sites.networks import load_theta, make_net, theta_of
from optbench.learn.sites.parallel_weeks import SiteFleet
from optbench.learn.sites.pilot import (
    RoutingNetwork,
    layers,
    random_network,
    row_size,
    run_network,
    view_of,
)
from optbench.learn.sites.soft_actor_critic import masked_log_softmax
from optbench.model.instance import Instance
from optbench.model.streams import with_stream
from optbench.model.verify import verify
from optbench.plugins.discovery import load_problem, load_solver
from optbench.plugins.policy import Policy
from optbench.sim.kernel.sites.network_scores import score_flat, score_shared, work_size
from optbench.sim.kernel.sites.pilot import OVER, SERVICE_S, WAITED_S
from optbench.sim.kernel.sites.view import GLOBAL_FEATURES, OPTION_FEATURES, SITE_FEATURES, G, O, S
from optbench.sim.sites.sites import grid_of


def two_sites() -> Instance:
    """Cheap: one device, 2 s for 10 J a unit. Dear: two devices, 1 s for 30 J on one of them, 0.75
    s for 36 J on both.
    """
    m = ob.Model("two sites", time="seconds", horizon_s=20.0)
    cheap, dear = m.pool("cheap", count=1), m.pool("dear", count=2)
    modes = [
        m.mode(cheap, 2.0, energy_j=10.0),
        m.mode(dear, 1.0, energy_j=30.0),
        m.mode({dear: 2}, 0.75, energy_j=36.0),
    ]
    kind = m.kind(modes=modes)
    m.tasks([1.0, 1.0, 1.0, 1.0], kind=kind, release_s=[0.0, 1.0, 1.0, 1.0])
    m.minimize(energy_j=1.0)
    return with_stream(m.build(), opens=0)


def test_features_of_the_first_job() -> None:
    """μ = 4 W: costs 10 + 8 = 18, 30 + 4 = 34, 36 + 3 = 39; the least energies of the pools are 10
    and 30, 20 on the mean.
    """
    fleet = SiteFleet([two_sites()])
    fleet.set_price(0, 4.0)
    seen = fleet.roll(
        random_network(grid_of(two_sites()), np.random.default_rng(0)), 1, np.random.default_rng(1)
    )
    row, mask = seen.rows[0, 0], seen.masks[0, 0]
    assert mask.tolist() == [True, False, True, True]
    options = dict(zip(OPTION_FEATURES, row[G + 2 * S :].reshape(4, O).T, strict=True))
    assert options["regret"] == pytest.approx([0.0, 0.0, 4 * 16 / 20, 4 * 21 / 20])
    assert options["energy"] == pytest.approx(
        [2 * (10 / 20 - 1), 0.0, 2 * (30 / 20 - 1), 2 * (36 / 20 - 1)]
    )
    assert options["free_after"] == pytest.approx([0.0, 0.0, 0.5, 0.0])
    sites = dict(zip(SITE_FEATURES, row[G : G + 2 * S].reshape(2, S).T, strict=True))
    assert sites["free"].tolist() == [1.0, 1.0] and sites["queue"].tolist() == [0.0, 0.0]
    whole = dict(zip(GLOBAL_FEATURES, row[:G], strict=True))
    assert whole["free"] == 1.0 and whole["size"] == 0.0
    assert whole["latency_price"] == pytest.approx(0.5 * np.log(4.1 / 20.0))


def test_a_site_without_free_devices_is_masked_until_all_are_full() -> None:
    """Three jobs at time 1 on three devices, one of which job 0 holds: the fourth finds none free
    and may wait anywhere.
    """
    instance = two_sites()
    fleet = SiteFleet([instance])
    cheapest = cheapest_first(instance)
    seen = fleet.roll(cheapest, 4, np.random.default_rng(1))
    assert seen.actions[0].tolist()[:3] == [0, 2, 2]
    assert seen.masks[0, 1].tolist() == [False, False, True, True]
    assert seen.masks[0, 2].tolist() == [False, False, True, False]
    assert seen.masks[0, 3].tolist() == [True, False, True, True]
    # The last one ends the instance at its horizon; the waiting of its interval is counted at both
    # ends: one job, then none.
    assert seen.measured[0, 3, OVER] == 1.0 and seen.measured[0, 3, WAITED_S] > 0.0
    assert seen.measured[0, :3, SERVICE_S].tolist() == [2.0, 1.0, 1.0]


def cheapest_first(instance: Instance) -> RoutingNetwork:
    """A network whose score is minus the regret, by hand: the regret goes through both layers in
    the first neuron.
    """
    grid = grid_of(instance)
    arrays = {
        name: np.zeros(shape)
        for name, shape in layers("shared", 4, grid.mode_at.shape[1], grid.widest).items()
    }
    arrays["option"][OPTION_FEATURES.index("regret"), 0] = 1.0
    arrays["second"][0, 0], arrays["last"][0, 0] = 1.0, -50.0
    theta = np.concatenate([array.ravel() for array in arrays.values()]).astype(np.float32)
    return RoutingNetwork("shared", 4, theta, greedy=True)


@pytest.mark.parametrize("kind", ["shared", "flat"])
def test_compiled_networks_are_those_of_torch(kind: str) -> None:
    pools, widest, hidden = 3, 4, 8
    rng = np.random.default_rng(2)
    net = make_net(kind, pools, widest, hidden)
    row = rng.normal(size=row_size(pools, widest)).astype(np.float32)
    mask = rng.random(pools * widest) < 0.6
    work = np.zeros(work_size(pools, widest, np.array([0, hidden, 0])), dtype=np.float32)
    score = np.zeros(pools * widest)
    (score_shared if kind == "shared" else score_flat)(
        pools, widest, hidden, theta_of(net), row, mask, work, score
    )
    wanted = (
        masked_log_softmax(
            net(torch.from_numpy(row)[None]).squeeze(2), torch.from_numpy(mask)[None]
        )[0]
        .detach()
        .numpy()
    )
    found = score[mask] - np.log(np.exp(score[mask]).sum())
    assert found == pytest.approx(wanted[mask], abs=1e-5)
    twin = make_net(kind, pools, widest, hidden)
    load_theta(twin, theta_of(net))
    assert theta_of(twin).tolist() == theta_of(net).tolist()


def test_a_roll_is_the_run_itself() -> None:
    """The same network and the same draws: the jobs that one run sends are those of the other."""
    instance = load_problem("geo_dc:days=0.02").instance(500)
    pilot = random_network(grid_of(instance), np.random.default_rng(3))
    trace, asked = run_network(instance, pilot, 20.0, np.random.default_rng(4), mean_units=1.0)
    fleet = SiteFleet([instance])
    fleet.set_price(0, 20.0)
    seen = fleet.roll(pilot, asked, np.random.default_rng(4))
    assert seen.measured[0, :, OVER].tolist() == [0.0] * (asked - 1) + [1.0]
    assert trace.schedule is not None
    order = np.argsort(instance.tasks.release, kind="stable")
    pool = np.full(instance.num_tasks, -1)
    pool[trace.schedule.task] = instance.modes.primary[trace.schedule.mode]
    sent = seen.actions[0] // fleet.widest
    begun = pool[order] >= 0
    assert (pool[order][begun] == sent[begun]).all()


def test_the_view_of_an_instance_knows_its_announced_outages() -> None:
    instance = load_problem(
        "geo_dc:days=0.5,maintenance=largest@6h+2h,outage=us-west@3h+1h"
    ).instance(500)
    view = view_of(grid_of(instance), mean_units=1.0)
    assert view.leave_time.tolist() == [
        6 * 3600 * 10**9,
        8 * 3600 * 10**9,
    ] and view.leave_devices.tolist() == [512, -512]


def test_weights_that_have_learned_nothing_fail_the_gate(tmp_path: Path) -> None:
    """Gate: within 2 % of the certified frontier on half a day (which begins with all sites
    empty).
    """
    shipped = read_checkpoint(Path(ob.__file__).parents[1] / "solvers" / "_chsac_af.safetensors")
    instance = load_problem("geo_dc:days=0.5").instance(501)
    grid = grid_of(instance)
    unlearned = random_network(
        grid, np.random.default_rng(5), shipped.pilot.kind, shipped.pilot.hidden
    )
    gaps = []
    for name, pilot in (("learned", shipped.pilot), ("random", unlearned)):
        file = tmp_path / f"{name}.safetensors"
        write_checkpoint(file, replace(shipped, pilot=pilot))
        _, solver = load_solver("chsac_af", {"checkpoint": str(file), "latency_budget_s": 1490.0})
        assert isinstance(solver, Policy)
        verdict = verify(instance, solver.play(instance, np.random.default_rng(0)).schedule)  # type: ignore[arg-type]
        assert verdict.feasible
        gaps.append(path_metrics(instance, verdict.metrics)["gap_frontier"])
    assert 0.0 <= gaps[0] < 0.02 < gaps[1]


def example() -> SiteCheckpoint:
    grid = grid_of(two_sites())
    pilot = random_network(grid, np.random.default_rng(0), "shared", 4)
    return SiteCheckpoint(
        pilot, 2, 2, 1.0, np.array([100.0, 400.0]), np.array([8.0, 2.0]), {"seed": 3}
    )


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "a.safetensors", example())
    found = read_checkpoint(tmp_path / "a.safetensors")
    assert found.pilot.theta.tolist() == example().pilot.theta.tolist()
    assert (found.provenance, found.pools, found.widest, found.mean_units) == (
        {"seed": 3},
        2,
        2,
        1.0,
    )
    # Log-linear: half way in ratio from 100 to 400 s is 200 s, and from 8 to 2 W is 4 W.
    assert found.price_w(200.0) == pytest.approx(4.0)
    with pytest.raises(ParameterError, match="latency_budget_s is 50"):
        found.check_budget("chsac_af", 50.0)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (
            lambda c: replace(c, pilot=replace(c.pilot, theta=np.full_like(c.pilot.theta, np.nan))),
            "not finite",
        ),
        (lambda c: replace(c, prices_w=np.array([1.0])), "of equal length"),
    ],
)
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, harm: object, words: str) -> None:
    write_checkpoint(tmp_path / "a.safetensors", harm(example()))  # type: ignore[operator]
    with pytest.raises(FileFormatError, match=words):
        read_checkpoint(tmp_path / "a.safetensors")


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(b"no tensors here")
    with pytest.raises(FileFormatError, match=r"a\.safetensors: not a readable"):
        read_checkpoint(tmp_path / "a.safetensors")
    with pytest.raises(FileFormatError, match="there is no such checkpoint"):
        read_checkpoint(tmp_path / "b.safetensors")
