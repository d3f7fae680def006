"""The page that ``optbench ui`` opens: the runs of a study, sorted by gap."""

from __future__ import annotations

from optbench.store.run_store import Store
from optbench.store.snapshots import last_study, load_plan
from optbench.track.runs import TrackingError
from optbench.track.saved_view import page_of, view_of
from optbench.track.study_runs import StudyRuns
from optbench.track.tracking import Tracking

# The list of experiments; MLflow's own first page is about language models.
EXPERIMENTS = "/#/experiments"


def first_page(tracking: Tracking, store: Store, study: str | None, charts: bool = False) -> str:
    """Return the page of ``study``, by default of the one that was run last.

    Where MLflow has no runs of it, a study that was named is an error; otherwise the page is the
    list of experiments.
    """
    name = study or last_study(store)
    if name is None:
        return EXPERIMENTS
    plan = load_plan(name, store)
    runs = StudyRuns(plan, store)
    experiment_id = tracking.active_experiment(runs.experiment)
    if experiment_id is None:
        if study is None:
            return EXPERIMENTS
        raise TrackingError(
            f"MLflow has no runs of study {plan.study.name!r} ({tracking.place.uri}); `optbench "
            f"sync {study}` sends them"
        )
    view = view_of(plan, *runs.runs(store.records()))
    tracking.hold_view(experiment_id, view)
    return page_of(experiment_id, view.key, charts)
