"""The page of a study in MLflow: its runs sorted by gap, with columns and charts, saved as a view.

MLflow keeps a saved view as a tag of the experiment, ``mlflow.sharedViewState.<key>``; the address
``#/experiments/<id>/runs?viewStateShareKey=<key>`` opens it. The tag is an envelope of a name,
times and the state of the page: the search and the order of the runs, the columns and the charts.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from optbench.study.formula_names import LAST_LEVEL
from optbench.study.planning import Plan
from optbench.track.runs import PREFIX, TrackedRun

VIEW_TAG = "mlflow.sharedViewState."
# Without it the side bar lists pages about language models.
WORKFLOW = {"workflowType": "machine_learning"}
CHARTS = {"compareRunsMode": "CHART"}
# The study gap ranks: it exists for every solver with a schedule, the gap only for those that
# report a bound of their own.
ORDER = "study_gap"
COLUMNS = ("study_gap", "gap", "objective", "bound", "study_bound", "wall_s", "energy_j")
STATUS = f"{PREFIX}status"
# The metrics that have a bar chart each, in this order.
DRAWN = ("study_gap", "gap", "objective", "wall_s")
SECTION = "optbench"
MAX_BARS, MAX_POINTS = 20, 100
WIDTHS = {"name": 270, "duration": 90, "gap": 180, "metric": 120, "tag": 110}
HASH_DIGITS = 12


@dataclass(frozen=True)
class SavedView:
    """A view of one configuration of a study; ``tag`` and ``value`` are what MLflow keeps."""

    key: str
    name: str
    state: dict[str, Any]
    made_ms: int

    @property
    def tag(self) -> str:
        return f"{VIEW_TAG}{self.key}"

    @property
    def value(self) -> str:
        """The envelope that MLflow's page reads; the same for the same state."""
        text = json.dumps(self.state, separators=(",", ":"), sort_keys=True)
        packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")
        envelope = {
            "name": self.name,
            "createdAt": self.made_ms,
            "updatedAt": self.made_ms,
            "state": f"deflate;{packed}",
        }
        return json.dumps(envelope, separators=(",", ":"))


def view_of(plan: Plan, parent: TrackedRun, children: Iterable[TrackedRun]) -> SavedView:
    """Return the view of a configuration whose runs are ``children``."""
    known = {name for child in children for name in child.all_metrics()}
    order = _order(plan, known)
    columns = [name for wanted in COLUMNS for name in _present(wanted, known)]
    if order != ORDER:
        columns = [order, *columns]
    name = f"{plan.study.name} by gap ({plan.study.config_hash[:8]})"
    key = f"optbench-{plan.study.config_hash[:HASH_DIGITS]}"
    return SavedView(key, name, _state(plan, columns, order), parent.began_ms)


def _order(plan: Plan, known: set[str]) -> str:
    """Return the metric that sorts the runs: the study gap, or the gap of the last level where the
    study ranks by it.
    """
    levels = [name for name in known if name.startswith("gap_") and _level(name)]
    if plan.study.rank != LAST_LEVEL or not levels:
        return ORDER
    return max(levels, key=lambda name: int(name.rpartition("_")[2]))


def _present(wanted: str, known: set[str]) -> list[str]:
    """Return a metric's name, or those of its levels; none where no run has it."""
    levels = sorted(name for name in known if name.startswith(f"{wanted}_") and _level(name))
    return [wanted] if wanted in known else levels


def _level(name: str) -> bool:
    return name.rpartition("_")[2].isdigit()


def _state(plan: Plan, metrics: Sequence[str], order: str) -> dict[str, Any]:
    """Return the state of MLflow's page of runs."""
    names = [_metric(name) for name in metrics]
    status = f"tags.`{STATUS}`"
    widths = {"attributes.`Run Name`": WIDTHS["name"], "duration": WIDTHS["duration"]}
    widths |= {_metric(name): WIDTHS["gap" if "gap" in name else "metric"] for name in metrics}
    widths |= {status: WIDTHS["tag"]}
    return {
        "searchFilter": f"tags.`{PREFIX}kind` = 'solve' and tags.`{PREFIX}config_hash` = "
        f"'{plan.study.config_hash}'",
        "orderByKey": _metric(order),
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "selectedColumns": [*names, status],
        "columnOrder": list(widths),
        "columnWidths": widths,
        "runsHiddenMode": "FIRST_20_RUNS",
        "hideEmptyCharts": True,
        "compareRunCharts": list(_charts(metrics, order)),
        "compareRunSections": [
            {"uuid": SECTION, "name": "Gaps and times", "display": True, "isReordered": False}
        ],
        "isAccordionReordered": True,
    }


def _metric(name: str) -> str:
    return f"metrics.`{name}`"


def _charts(metrics: Sequence[str], order: str) -> Iterable[dict[str, Any]]:
    """Yield a bar chart for each drawn metric, and the gap that sorts over the time."""
    for name in dict.fromkeys((order, *DRAWN)):
        if name in metrics:
            yield {**_card("BAR", name, MAX_BARS), "metricKey": name}
    if {order, "wall_s"} <= set(metrics):
        card = _card("SCATTER", f"{order} over wall_s", MAX_POINTS)
        axes = {"xaxis": "wall_s", "yaxis": order}
        yield card | {axis: {"key": key, "type": "METRIC"} for axis, key in axes.items()}


def _card(kind: str, name: str, most: int) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": f"{SECTION}-{name}",
        "metricSectionId": SECTION,
        "displayName": name,
        "runsCountToCompare": most,
        "deleted": False,
        "isGenerated": False,
    }


def page_of(experiment_id: str, key: str, charts: bool = False) -> str:
    """Return the part of the address of MLflow's page that opens a view, after the server's."""
    query = {"viewStateShareKey": key} | WORKFLOW | (CHARTS if charts else {})
    return f"/#/experiments/{experiment_id}/runs?{urlencode(query)}"
