"""An answer of a process, changes to it, and the record that the judge makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from optbench.execute.base import JobOutcome
from optbench.model.instance import Instance
from optbench.run import judge as judging
from optbench.store.records import Record
from tests.run.study_parts import answer_of, cell_of, instance_of

INSTANCE = instance_of()
ANSWER = answer_of(INSTANCE)
TOTAL_S = 2.0
AT = "2026-11-18T12:00:00.000+00:00"


def judged(answer: Any, instance: Instance = INSTANCE, **fields: Any) -> Record:
    kind = fields.pop("kind", "solve")
    outcome = JobOutcome("key", answer, **{"total_s": TOTAL_S, **fields})
    record = judging.judge(cell_of(instance, kind=kind), outcome, instance, AT)
    line = json.dumps(record.to_dict(), allow_nan=False)
    assert Record.from_dict(json.loads(line)).to_dict() == record.to_dict()
    kept = judging.kept_files(outcome, record)
    assert all(isinstance(content, bytes) for content in kept.values())
    assert not record.verified or {"schedule.json", "trajectory.json"} <= set(kept)
    return record


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(json.dumps(ANSWER))
    change(answer)
    return answer


def in_result(**values: Any) -> dict[str, Any]:
    return changed(lambda answer: answer["result"].update(values))


BOUND = {"value": 1.0, "source": "told", "proof": "solver", "level": 0}
