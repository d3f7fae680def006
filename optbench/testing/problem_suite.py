"""Conformance suite of problems: seeded, valid, solvable, bounded, equal after a file round
trip.
"""

from __future__ import annotations

import pickle
from typing import ClassVar

import numpy as np
import pytest

from optbench import api
from optbench.errors import UnsupportedError
from optbench.model.files.strict_json import parse_json
from optbench.model.instance import Instance
from optbench.plugins import discovery, specs
from optbench.plugins.protocol import Problem, check_supported
from optbench.plugins.shape_files import instance_text, shaped_instance
from optbench.testing.documented import check_documented


class ProblemConformance:
    """Inherit, name your class ``Test...`` and set ``problem`` to a spec, small enough to be solved
    within seconds.
    """

    problem: ClassVar[str]
    # False for a family without randomness: every seed makes the same instance.
    seeded: ClassVar[bool] = True
    time_limit_s: ClassVar[float] = 5.0

    def load(self) -> Problem:
        return discovery.load_problem(self.problem)

    def instance(self, seed: int = 0) -> Instance:
        made: Instance = self.load().instance(seed)
        return made

    def test_it_is_documented(self) -> None:
        name = specs.parse(self.problem)[0]
        check_documented("problem", name, discovery.load_class("problem", name))

    def test_same_seed_same_instance(self) -> None:
        assert self.instance(3).hash == self.instance(3).hash

    def test_another_seed_another_instance(self) -> None:
        assert len({self.instance(seed).hash for seed in range(4)}) > 1 or not self.seeded

    def test_it_uses_no_global_generator(self) -> None:
        before = np.random.get_state(legacy=False)
        first = self.instance(1).hash
        assert str(before) == str(np.random.get_state(legacy=False))
        np.random.default_rng(5).random()
        assert self.instance(1).hash == first

    def test_an_instance_survives_a_file(self) -> None:
        instance = self.instance()
        assert shaped_instance(parse_json(instance_text(instance))).hash == instance.hash

    def test_it_survives_pickling(self) -> None:
        problem = self.load()
        twin = pickle.loads(pickle.dumps(problem))
        assert twin.instance(2).hash == problem.instance(2).hash

    def test_some_solver_solves_it_within_its_bound(self) -> None:
        instance = self.instance()
        solver = first_solver_for(instance)
        result = api.solve(instance, solver, time_limit_s=self.time_limit_s)
        assert result.verified, (
            f"{solver} found no schedule of {instance.name} within {self.time_limit_s} s: "
            f"{result.status}"
        )
        assert result.bound is not None, f"no bound for {instance.name}"
        # ob.solve raises a ContradictionError if a bound exceeds the objective; a gap implies both
        # exist.
        assert result.gap is not None

    def test_its_default_instance_has_a_bound(self) -> None:
        """Bounding leaves the instance and the global generator alone."""
        instance = self.instance()
        before = np.random.get_state(legacy=False)
        assert api.bound(instance, time_limit_s=self.time_limit_s)
        assert str(before) == str(np.random.get_state(legacy=False))
        # The hash is computed after the bounding; it must be that of the unchanged instance.
        assert instance.hash == self.instance().hash


def first_solver_for(instance: Instance) -> str:
    """The first solver, exact ones first, that supports the instance."""
    names = sorted(
        discovery.names("solver"), key=lambda name: (name not in ("cpsat", "highs"), name)
    )
    refusals = []
    for name in names:
        try:
            check_supported(discovery.load_solver(name)[1], name, instance)
        except UnsupportedError as error:
            refusals.append(str(error))
        else:
            return name
    pytest.fail(f"no solver supports {instance.name}: {'; '.join(refusals)}")
