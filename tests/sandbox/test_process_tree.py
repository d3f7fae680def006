"""Descendants are found and ended wherever they went."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a subreaper")

# Four processes beneath a subreaper: a child, its child in a session of its own that has lost its
# parent, a stopped one, and a zombie that nobody reaps.
PROGRAM = """
import os, signal, sys, time
from optbench.sandbox import process_tree as tree
from optbench.sandbox.system_calls import PR_SET_CHILD_SUBREAPER, prctl
prctl(PR_SET_CHILD_SUBREAPER, 1)
told, tell = os.pipe()

def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid

def tells():
    os.write(tell, b"x")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(300)

def orphans():
    os.setsid()
    child(tells)

def parent():
    child(lambda: None)
    tells()

first = child(parent)
child(orphans)
os.kill(child(tells), signal.SIGSTOP)
os.read(told, 1), os.read(told, 1)
time.sleep(0.5)
before = tree.descendants(os.getpid())
assert sorted(before) == sorted(tree.descendants_by_table(os.getpid()))
used = tree.usage(first)
assert used is not None and used.threads == 1 and used.memory_mb > 0
SPARED
ended, stuck = tree.kill_tree()
print(len(before), stuck, tree.descendants(os.getpid()), tree.reap())
"""


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_all_of_them_end() -> None:
    # Those that count: parent, its zombie, the middle one (a zombie of this program), its orphan,
    # and the stopped one.
    assert run(PROGRAM.replace("SPARED", "")) == "5 0 [] None\n"


def test_some_are_spared() -> None:
    kept = (
        "tree.kill_tree([first]); print(first in tree.descendants(os.getpid()), "
        "tree.is_alive(first))"
    )
    assert run(PROGRAM.replace("SPARED", kept)).splitlines()[0] == "True True"


def test_psutil_shows_the_same_tree() -> None:
    """On systems without /proc psutil lists and measures the processes."""
    program = "import os, subprocess\nfrom optbench.sandbox import process_tree as tree\n"
    program += "tree.LISTS_CHILDREN = False\nme = os.getpid()\n"
    program += "child = subprocess.Popen(['sleep', '60'])\n"
    program += "assert tree.descendants(me) == tree._children(me) == [child.pid]\n"
    program += (
        "used = tree.usage_by_psutil(child.pid)\nassert used.memory_mb > 0 and used.threads == 1\n"
    )
    program += "child.kill()\nprint(child.wait(), tree.usage_by_psutil(child.pid))"
    assert run(program) == "-9 None\n"


def test_a_group_that_a_descendant_leads_is_below() -> None:
    """Without a subreaper an orphan is found by the group of the process that started it."""
    program = "import os, subprocess, time\nfrom optbench.sandbox import process_tree as tree\n"
    program += "orphan = \"subprocess.Popen(['sleep', '60'])\"\n"
    program += 'middle = f"import os, subprocess; os.fork() or ({orphan}, os._exit(0))"\n'
    program += "words = ['python3', '-c', middle + '; import time; time.sleep(60)']\n"
    program += "leader = subprocess.Popen(words, start_new_session=True)\nnamed = []\n"
    program += "for _ in range(200):\n"
    program += "    found = tree.descendants_by_table(os.getpid())\n"
    program += "    named = [open(f'/proc/{pid}/comm').read().strip() for pid in found]\n"
    program += "    if 'sleep' in named:\n        break\n    time.sleep(0.1)\n"
    program += "os.killpg(leader.pid, 9)\nprint('sleep' in named, leader.wait())"
    assert run(program) == "True -9\n"
