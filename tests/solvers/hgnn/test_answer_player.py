"""Answers played one after another on the same tables give what a rule made anew gives."""

from __future__ import annotations

import numpy as np

from optbench.api import load_target
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.sim.rules import run_rule
from solvers.hgnn.answer_noise import draw_noise, shifted
from solvers.hgnn.answer_player import AnswerPlayer
from solvers.hgnn.answers import plain_answers
from solvers.hgnn.instance_kinds import is_judged_by_its_end, value_of_end
from solvers.hgnn.milestone_rule import rule_of
from solvers.hgnn.situation import situation_of

SHOPS = ("jobshop:jobs=5,machines=4", "flexible_jobshop:jobs=5,machines=4,operations=3")


def test_tables_made_once_play_as_tables_made_anew(problems: list[Instance]) -> None:
    rng = np.random.default_rng(2)
    for instance in [*problems, *map(load_target, SHOPS)]:
        found = situation_of(instance)
        seen, player = found.seen, AnswerPlayer(instance, found)
        plain = plain_answers(len(seen.task), len(seen.device), len(seen.sets))
        drawn = [shifted(plain, draw_noise(seen, plain, rng), 1.0) for _ in range(3)]
        # The plain answers again at the end: nothing of those between is left.
        for answers in (plain, *drawn, plain):
            made, anew = player.play(answers), run_rule(instance, rule_of(instance, found, answers))
            assert made is not None and anew.schedule is not None
            for name in ("task", "mode", "start", "end"):
                assert np.array_equal(getattr(made, name), getattr(anew.schedule, name))


def test_where_the_end_alone_decides_it_is_the_verified_objective(
    problems: list[Instance],
) -> None:
    """Clusters weigh energy; a deadline may be missed by a rule and has to be checked."""
    for spec in (*SHOPS, "rcpsp:activities=6"):
        instance = load_target(spec)
        assert is_judged_by_its_end(instance)
        found = situation_of(instance)
        seen = found.seen
        answers = plain_answers(len(seen.task), len(seen.device), len(seen.sets))
        made = AnswerPlayer(instance, found).play(answers)
        assert made is not None
        verdict = verify(instance, made)
        assert verdict.feasible and value_of_end(instance, made) == verdict.objectives[0]
    for instance in problems:
        assert not is_judged_by_its_end(instance)
