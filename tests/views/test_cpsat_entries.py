"""The CP model entry by entry: restated by hand for two instances that use every feature, and no
number may change unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

import pytest
from ortools.sat.python import cp_model
from ortools.sat.python import cp_model_helper as cmh

import optbench as ob
from optbench.model.instance import Instance
from optbench.views.cpsat import build
from tests.views.cpsat_proto import lines_of

ZERO = Fraction(0)


def transfers() -> Instance:
    """Modes, transfers with energy, pools, two power caps, an energy budget, soft and hard
    deadlines, a release.
    """
    m = ob.Model("transfers")
    node = m.place("node")
    a = m.pool("a", 1, at=node, idle_w=10.0)
    b = m.pool("b", 2, idle_w=5.0)
    m.link(a, b, bandwidth_gbit_s=8.0, latency_ms=1000.0, energy_j_per_gb=3.0)
    p = m.task(
        "p", modes=[m.mode(a, 2, 100.0, power_w=60.0), m.mode({b: 2}, 3, 90.0, power_w=40.0)]
    )
    q = [m.mode(a, 4, 70.0, power_w=50.0), m.mode(b, 5, 65.0, power_w=30.0)]
    m.task("q", modes=q, after=p, data_gb={p: 2.0}, deadline_s=8, hard=False, weight=2.0)
    m.task("r", modes=[m.mode(b, 1, 20.0, power_w=45.0)], release_s=1, deadline_s=9, hard=True)
    m.limit(power_w=95.0)
    m.limit(power_w=65.0, at=node)
    m.limit(energy_j=500.0)
    m.minimize(energy_j=1.0, tardiness_s=4.0, makespan_s=2.0)
    return m.build()


# Variable names: s, e, x by task (and mode); y by edge and pools; T = 1 (release) + 3 + 5 + 1
# (longest) + 3 (lag 1 s + 2 GB at 1 GB/s) = 13. The shortest lag is 0, so that q has head 2, and p
# tail 4.
TRANSFERS = """
var s0 in 0..7
var s1 in 2..9
var s2 in 1..8
var e0 in 2..9
var e1 in 6..13
var x0_0 in 0..1
var x0_1 in 0..1
var x1_2 in 0..1
var x1_3 in 0..1
var y0_0_0 in 0..1
var y0_0_1 in 0..1
var y0_1_0 in 0..1
var y0_1_1 in 0..1
var late1 in 0..5
var makespan in 6..13
exactly one x0_0 x0_1
exactly one x1_2 x1_3
+1 e0 -1 s0 -2 x0_0 -3 x0_1 in 0..0
+1 e1 -1 s1 -4 x1_2 -5 x1_3 in 0..0
-1 e0 +1 makespan in 0..inf
-1 e1 +1 makespan in 0..inf
+1 makespan -1 s2 in 1..inf
-1 e0 +1 s1 -3 y0_0_1 -3 y0_1_0 in 0..inf
-1 x0_0 +1 y0_0_0 +1 y0_0_1 in 0..0
-1 x0_1 +1 y0_1_0 +1 y0_1_1 in 0..0
-1 x1_2 +1 y0_0_0 +1 y0_1_0 in 0..0
-1 x1_3 +1 y0_0_1 +1 y0_1_1 in 0..0
-1 e1 +1 late1 in -8..inf
if x0_0: interval i0_0_1 [+1 s0, +2, +1 s0 +2]
if x0_1: interval i0_1_1 [+1 s0, +3, +1 s0 +3]
if x1_2: interval i1_2_1 [+1 s1, +4, +1 s1 +4]
if x1_3: interval i1_3_1 [+1 s1, +5, +1 s1 +5]
interval i2_4_1 [+1 s2, +1, +1 s2 +1]
no overlap i0_0_1 i1_2_1
cumulative i0_1_1*+2 i1_3_1*+1 i2_4_1*+1 <= +2
"""
# Node: 65 - 10 at rest leaves 55 for p (60 - 10) or q (50 - 10), never both. Cluster: 95 - 20 = 75
# for each power less the rest, in units of 5 W.
TRANSFERS += """
no overlap i0_0_1 i1_2_1
cumulative i0_0_1*+10 i0_1_1*+6 i1_2_1*+8 i1_3_1*+5 i2_4_1*+8 <= +15
"""
# Energy: p 100 - 2·10 = 80 or 90 - 3·2·5 = 60, q 70 - 4·10 = 30 or 65 - 5·5 = 40, r 20 - 5 = 15;
# least 60 + 30 + 15 = 105; rest 10 + 2·5 = 20 W until the end; 2 GB at 3 J. The budget leaves 500 -
# 105 = 395. Objective: + 2 M, + 4·2 s of lateness. In units of 2 J; M is at least 6, which is 66
# units.
TRANSFERS += """
+10 makespan +10 x0_0 +5 x1_3 +3 y0_0_1 +3 y0_1_0 in -inf..197
minimize +4 late1 +11 makespan +10 x0_0 +5 x1_3 +3 y0_0_1 +3 y0_1_0 offset -66 scaling 1
"""
# Loads: pool a by p and q, q from its head 2, p before its tail 4; pool b twice, by all, from heads
# 1 and 2, before tail 4.
TRANSFERS += """
-1 makespan +2 x0_0 +4 x1_2 in -inf..0
-1 makespan +4 x1_2 in -inf..-2
-1 makespan +2 x0_0 in -inf..-4
-2 makespan +6 x0_1 +5 x1_3 in -inf..-1
-2 makespan +5 x1_3 in -inf..-3
-2 makespan +5 x1_3 in -inf..-4
-2 makespan +6 x0_1 in -inf..-8
"""


def tariffs() -> Instance:
    """A price that rises at 2, a fixed horizon, flow time, a mode of two pools, and two tasks that
    are alike.
    """
    m = ob.Model("tariffs", horizon_s=6)
    a = m.pool("a", 1, idle_w=1.8e6)
    b = m.pool("b", 2)
    m.tariff(price_usd_per_kwh=[1.0, 3.0], times_s=[0, 2])
    both = m.mode({a: 1, b: 1}, 2, 4 * 3.6e6)
    m.task("x", modes=[m.mode(b, 1, 3.6e6)])
    m.task("y", modes=[both])
    m.task("z", modes=[both])
    m.minimize(cost_usd=1.0, flow_time_s=0.5)
    return m.build()


# Pieces by task, always present (-1): where the cost's slope changes, at 2 and one length earlier;
# w counts ticks into a piece. In halves: x costs 1 kWh, 2 before 2 and 6 after. y costs 4 kWh less
# the 0.5 kWh a second that pool a is spared: from 0, 4 - 1 = 3; from 1, 4·2 - 0.5·(1 + 3) = 6; from
# 2 on, 12 - 3 = 9. Constants: rest 0.5·(2·1 + 4·3) = 7, flow 0.5·(1 + 2 + 2).
TARIFFS = """
var s0 in 0..5
var s1 in 0..4
var s2 in 0..4
var l0_-1_0 in 0..1
var l0_-1_1 in 0..1
var l0_-1_2 in 0..1
var w0_-1_2 in 0..3
var l1_-1_0 in 0..1
var l1_-1_1 in 0..1
var w1_-1_0 in 0..1
var w1_-1_1 in 0..2
var l2_-1_0 in 0..1
var l2_-1_1 in 0..1
var w2_-1_0 in 0..1
var w2_-1_1 in 0..2
+1 l0_-1_0 +1 l0_-1_1 +1 l0_-1_2 in 1..1
+1 l1_-1_0 +1 l1_-1_1 in 1..1
+1 l2_-1_0 +1 l2_-1_1 in 1..1
-3 l0_-1_2 +1 w0_-1_2 in -inf..0
-1 l1_-1_0 +1 w1_-1_0 in -inf..0
-2 l1_-1_1 +1 w1_-1_1 in -inf..0
-1 l2_-1_0 +1 w2_-1_0 in -inf..0
-2 l2_-1_1 +1 w2_-1_1 in -inf..0
-1 l0_-1_1 -2 l0_-1_2 +1 s0 -1 w0_-1_2 in 0..0
-2 l1_-1_1 +1 s1 -1 w1_-1_0 -1 w1_-1_1 in 0..0
-2 l2_-1_1 +1 s2 -1 w2_-1_0 -1 w2_-1_1 in 0..0
interval i0_0_1 [+1 s0, +1, +1 s0 +1]
interval i1_1_1 [+1 s1, +2, +1 s1 +2]
interval i2_1_1 [+1 s2, +2, +1 s2 +2]
no overlap i1_1_1 i2_1_1
cumulative i0_0_1*+1 i1_1_1*+1 i2_1_1*+1 <= +2
+1 s1 -1 s2 in -inf..0
minimize """
TARIFFS += (
    "+2 l0_-1_0 +2 l0_-1_1 +6 l0_-1_2 +6 l1_-1_0 +18 l1_-1_1 +6 l2_-1_0 +18 l2_-1_1 +1 s0 +1 s1 "
    "+1 s2 "
    "+6 w1_-1_0 +6 w2_-1_0 offset 0 scaling 1"
)

RESTATED = [(transfers, TRANSFERS), (tariffs, TARIFFS)]


@pytest.mark.parametrize(("make", "text"), RESTATED)
def test_the_model_is_the_restated_one(make: Callable[[], Instance], text: str) -> None:
    assert lines_of(build(make()).model.proto) == expected(text)


def test_constants_and_scales() -> None:
    first, second = build(transfers()).numbers, build(tariffs()).numbers
    assert (first.constant, first.scale, first.charge, first.loss) == (
        Fraction(105),
        Fraction(1, 2),
        ZERO,
        ZERO,
    )
    assert (second.constant, second.scale, second.charge, second.loss) == (
        Fraction(19, 2),
        Fraction(2),
        ZERO,
        ZERO,
    )


def test_the_optima() -> None:
    # p and q on a, r before, between or after them (50 + 40 W do not fit in 75): 7 ticks, 105 + 20
    # + 20·7 + 2·7 = 279. p and q on b, r beside q (25 + 40 W): 8 ticks, 105 + 10 + 20·8 + 2·8 =
    # 291. On both pools: 10 ticks at least.
    assert solved(transfers()) == 279.0
    # y at 0 and z at 2, x at 0 or 1: 7 + 3 + 9 + 1 + 0.5·(2 + 4 + 1) = 23.5.
    assert solved(tariffs()) == 23.5


def solved(instance: Instance) -> float:
    view, solver = build(instance), cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(view.model) == cp_model.OPTIMAL
    return view.bound(solver.best_objective_bound)


@pytest.mark.parametrize(("make", "text"), RESTATED)
def test_no_number_of_the_model_changes_unnoticed(make: Callable[[], Instance], text: str) -> None:
    written = str(build(make()).model.proto)
    numbers = [m for m in re.finditer(r"(?<=: )-?\d+(?=\n)", written) if abs(int(m[0])) < 2**62]
    assert len(numbers) > 150
    unnoticed = []
    for number in numbers:
        changed = f"{written[: number.start()]}{int(number[0]) + 1}{written[number.end() :]}"
        proto = cmh.CpModelProto()
        assert proto.parse_text_format(changed)
        try:
            same = lines_of(proto) == expected(text)
        except (IndexError, KeyError):  # the number was the index of something that is not there
            same = False
        if same:
            unnoticed.append(written[max(0, number.start() - 60) : number.end()])
    assert unnoticed == []


def expected(text: str) -> list[str]:
    return sorted(line for line in text.splitlines() if line)
