"""A GPU type of which nothing is public: measurements of one job say something of all."""

from __future__ import annotations

import numpy as np

from optbench.learn.colocation.estimators import matrix_completion, partner_mean
from tests.learn.colocation.small_facts import facts_of, some_runs, synthetic


def test_what_is_measured_on_a_new_generation_concerns_every_type() -> None:
    tables = synthetic()
    faster = tables.alone_per_s.copy()
    faster[1] = 3.0 * faster[0]
    known = np.ones(faster.shape, dtype=np.bool_)
    known[1] = False
    facts = facts_of(tables.gpu_names, tables.job_types, faster, tables.beside_per_s, known)
    for make in (partner_mean, matrix_completion):
        estimator = make(facts)
        before = estimator.estimates()
        for t in (0, 7, 14, 21, 22):
            told = some_runs(tables, t, [], 1)
            told.measurements = (type(told.measurements[0])(1, 0, t, -1, float(faster[1, t])),)
            estimator.learn(told)
        after = estimator.estimates()
        error = [np.abs(np.log(e.alone_per_s[1, 23] / faster[1, 23])) for e in (before, after)]
        assert error[1] < error[0] / 3
        assert after.alone_log_sd[1, 23] < before.alone_log_sd[1, 23]
        # Public cells stay what they are.
        assert np.array_equal(after.alone_per_s[0], faster[0])
