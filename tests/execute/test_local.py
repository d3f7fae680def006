"""What only the local engine meets: a zygote that is killed, a disk that refuses, its own clock."""

from __future__ import annotations

import contextlib
import socket
import sys
from pathlib import Path

import pytest

from optbench.execute.base import Job
from optbench.execute.cell_pool import CellPool, SlotHandle
from optbench.execute.message_channel import MessageChannel
from optbench.study.declared import CellBudget
from tests.execute.engine_programs import EngineUnderTest, said
from tests.hostile.cases import marked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
LOCAL = EngineUnderTest("local")


def test_a_killed_zygote_is_replaced(root: Path) -> None:
    started = LOCAL.program(
        root,
        "with engine(1) as executor:",
        "    list(executor.run([job('fcfs')]))",
        "    threading.Timer(1.0, executor.pool.process.kill).start()",
        "    for outcome in executor.run([job('loops'), job('fcfs')]): say(outcome)",
    )
    lost, honest = said(started)
    assert lost[:2] == ["loops", "signal"] and "exit code -9" in str(lost[2])
    assert honest == ["fcfs", None, None, None]
    assert marked(root) == []


def test_a_library_that_kills_the_zygote_is_left_to_the_cells(root: Path) -> None:
    (root / "networkx.py").write_text("import os\nos._exit(3)\n")
    (root / "solvers" / "loops.py").write_text("import networkx\n")
    started = LOCAL.program(
        root,
        "sys.path.insert(0, sys.argv[1])",
        "with engine(1, solvers=['loops']) as executor:",
        "    for outcome in executor.run([job('loops'), job('fcfs')]): say(outcome)",
    )
    lost, honest = said(started)
    assert lost[:2] == ["loops", "exited"] and "exit code 3" in str(lost[2])
    assert honest == ["fcfs", None, None, None]


def test_where_no_cell_can_be_started_none_has_failed(root: Path) -> None:
    (root / "file").write_text("")
    started = LOCAL.program(
        root,
        "from optbench.errors import OptbenchError",
        "given = job('fcfs')",
        (
            "nowhere = Job(given.key, 'solve', given.payload, given.budget, folder.parent / "
            "'file' / "
            "'work')"
        ),
        "with engine(2) as executor:",
        "    try:",
        "        for outcome in executor.run([nowhere, nowhere, nowhere]): say(outcome)",
        "    except OptbenchError as error:",
        "        print(json.dumps([str(error)]))",
        "    for outcome in executor.run([given]): say(outcome)",
    )
    told, honest = said(started)
    assert "no cell can be started: [Errno 20] Not a directory" in str(told[0])
    assert honest == ["fcfs", None, None, None]


def test_the_time_of_a_job_does_not_begin_while_libraries_are_loaded(tmp_path: Path) -> None:
    pool = CellPool()
    runner, zygote = socket.socketpair()
    channel = MessageChannel(socket.socketpair()[0])
    with runner, zygote, contextlib.closing(channel):
        pool.control = MessageChannel(runner)
        job = Job("key", "solve", {}, CellBudget(1.0), tmp_path)
        pool.slots[0] = slot = SlotHandle(0, channel, job=job, sent_at=-1e6)
        assert slot.is_silent()
        MessageChannel(zygote).send({"slot": 0, "pid": 1})
        pool.read_zygote()
        assert slot.pid == 1 and not slot.is_silent()


def test_compiled_code_of_a_plugin_is_kept_for_its_next_cell(root: Path) -> None:
    """Cells cannot write beside the source: they keep it in a folder of the plug-in's own, per
    state of its code.
    """
    lines = (
        "with engine(1, ['compiles']) as executor:",
        (
            "    for outcome in executor.run([job('compiles'), job('compiles')]): "
            "print(json.dumps([outcome.output.strip()]))"
        ),
    )
    assert said(LOCAL.program(root, *lines)) == [["loaded 0, compiled 1"], ["loaded 1, compiled 0"]]
    (folder,) = [
        path
        for path in (root / ".optbench" / "compiled").iterdir()
        if path.name.startswith("solver-compiles")
    ]
    assert any(folder.rglob("*.nbc")) and not (root / "solvers" / "__pycache__").exists()
    (root / "work" / "instance.pickle").unlink()
    (root / "work").rename(root / "earlier")
    file = root / "solvers" / "compiles.py"
    file.write_text(file.read_text().replace("a + b", "b + a"))
    assert said(LOCAL.program(root, *lines))[0] == ["loaded 0, compiled 1"]
