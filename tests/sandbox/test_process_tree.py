"""Descendants are found and ended wherever they went."""

from __future__ import annotations

import subprocess
import sys

import pytest

from optbench.sandbox import ps

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a subreaper")

# Four processes beneath a subreaper: a child, its child in a session of its own that has lost its parent, a stopped one, and a
# zombie that nobody reaps.
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
assert sorted(before) == sorted(tree._by_parents(os.getpid()))
used = tree.usage(first)
assert used is not None and used.threads == 1 and used.memory_mb > 0
SPARED
ended, stuck = tree.kill_tree()
print(len(before), stuck, tree.descendants(os.getpid()), tree.reap())
"""


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60).stdout


def test_all_of_them_end() -> None:
    # Those that count: parent, its zombie, the middle one (a zombie of this program), its orphan, and the stopped one.
    assert run(PROGRAM.replace("SPARED", "")) == "5 0 [] None\n"


def test_some_are_spared() -> None:
    kept = "tree.kill_tree([first]); print(first in tree.descendants(os.getpid()), tree.is_alive(first))"
    assert run(PROGRAM.replace("SPARED", kept)).splitlines()[0] == "True True"


@pytest.mark.parametrize(("text", "seconds"), [("0:01.50", 1.5), ("02:03", 123.0), ("1:00:00", 3600.0), ("2-00:00:01", 172801.0)])
def test_times_of_ps(text: str, seconds: float) -> None:
    assert ps.seconds(text) == seconds


def test_ps_shows_the_same_tree() -> None:
    program = "import os, subprocess\nfrom optbench.sandbox import process_tree as tree, ps\n"
    program += "child = subprocess.Popen(['sleep', '60'])\n"
    program += "me = os.getpid()\nassert child.pid in ps.descendants(me) and ps.usage(child.pid).memory_mb > 0\nchild.kill()\n"
    program += "print(child.wait(), ps.usage(child.pid))"
    assert run(program) == "-9 None\n"
