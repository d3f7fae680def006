"""A job may be followed by another, in a process of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.execute.engine_programs import RAY_SLOWLY, EngineUnderTest, said, until
from tests.hostile.cases import marked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@RAY_SLOWLY
def test_a_job_that_follows_another_runs_before_those_that_wait(
    engine: EngineUnderTest, root: Path
) -> None:
    """A second process under the same key; what kills it is its own outcome."""
    started = engine.program(
        root,
        "from dataclasses import replace",
        "begun = []",
        "def then(outcome):",
        "    begun.append(len(begun))",
        "    second = job('dies', how='segfault')",
        "    return replace(second, key=outcome.key) if outcome.answer else None",
        "def jobs():",
        "    for name in ('fcfs', 'dies', 'fcfs'):",
        "        made = job(name, how='abort') if name == 'dies' else job(name)",
        "        yield replace(made, then=then)",
        "with engine(1) as executor:",
        "    for outcome in executor.run(jobs()):",
        "        say(outcome)",
        "        if outcome.check: say(outcome.check)",
        "    stop = threading.Event()",
        "    def stopping(outcome):",
        "        stop.set()",
        "        return replace(job('loops'), key=outcome.key)",
        "    alone = [replace(job('fcfs'), then=stopping)]",
        "    print(json.dumps([len(begun), len(list(executor.run(alone, stop.is_set)))]))",
        "    for outcome in executor.run([job('fcfs')]): say(outcome)",
    )
    *outcomes, counts, last = said(started)
    assert [each[:2] for each in outcomes] == [
        ["fcfs", None],
        ["fcfs", "signal"],
        ["dies", "signal"],
        ["fcfs", None],
        ["fcfs", "signal"],
    ]
    assert json.dumps(counts) == "[3, 0]" and last == ["fcfs", None, None, None]
    until(lambda: marked(root) == [])
