"""What a process without a network can still reach: nothing but itself."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from optbench.sandbox import seccomp
from optbench.sandbox.confine import enforced_protections

pytestmark = pytest.mark.skipif(not seccomp.is_available(), reason="no filter for this machine")

IPPROTO_MPTCP = 262
# Tries to reach a port and a socket that is a file, in every way in which data can get there.
PROGRAM = """
import ctypes, multiprocessing, os, socket, sys
from optbench.sandbox import seccomp
if "filtered" in sys.argv:
    seccomp.install_filter(network="open" in sys.argv)
port, path = int(sys.argv[1]), sys.argv[2]

def tcp():
    socket.create_connection(("127.0.0.1", port)).close()

def multipath_tcp():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as end:
        end.connect(("127.0.0.1", port))

def data_with_the_opening():
    with socket.socket() as end:
        end.sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.1", port))

def message_with_the_opening():
    with socket.socket() as end:
        end.sendmsg([b"x"], [], socket.MSG_FASTOPEN, ("127.0.0.1", port))

def file():
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(path)

def datagram_of_a_pair():
    for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
        end.sendto(b"x", path + ".datagrams")

def queue_of_calls():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(425, 1, ctypes.create_string_buffer(120)) < 0:
        raise OSError(ctypes.get_errno(), "io_uring_setup")

for way in (tcp, multipath_tcp, data_with_the_opening, message_with_the_opening, file,
            datagram_of_a_pair, queue_of_calls):
    try:
        way()
        print(way.__name__, "reached")
    except PermissionError:
        print(way.__name__, "refused")
    except OSError as error:
        print(way.__name__, error)
"""
AMONG_ITSELF = """
import asyncio, multiprocessing, socket
from concurrent.futures import ProcessPoolExecutor
from optbench.sandbox import seccomp

def main():
    seccomp.install_filter(network=False)
    for kind in (socket.SOCK_STREAM, socket.SOCK_STREAM | socket.SOCK_CLOEXEC):
        one, other = socket.socketpair(socket.AF_UNIX, kind)
        one.sendall(b"hello")
        print(other.recv(5).decode())
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, pool.map(abs, [-1, -2]))
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            print(pool.submit(abs, -3).result())
        one, other = context.Pipe()
        one.send(4)
        print(other.recv())
    print(asyncio.run(asyncio.sleep(0, "loop")))

if __name__ == "__main__":
    main()
"""
WAYS = (
    *("tcp", "multipath_tcp", "data_with_the_opening", "message_with_the_opening", "file"),
    *("datagram_of_a_pair", "queue_of_calls"),
)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A port, and the path of a socket beside one for datagrams; who asks there is let in."""
    path = str(tmp_path / "socket")
    with ExitStack() as stack:
        made = [
            stack.enter_context(socket.socket(*kind))
            for kind in (
                (socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP),
                (socket.AF_UNIX, socket.SOCK_STREAM),
                (socket.AF_UNIX, socket.SOCK_DGRAM),
            )
        ]
        made[0].bind(("127.0.0.1", 0))
        made[1].bind(path)
        made[2].bind(path + ".datagrams")
        for end in made[:2]:
            end.listen(20)
        yield str(made[0].getsockname()[1]), path


def ways(*arguments: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_no_way_leads_out_without_a_network(places: tuple[str, str]) -> None:
    assert ways(*places, "filtered") == dict.fromkeys(WAYS, "refused")


def test_the_network_stays_open_at_home(places: tuple[str, str]) -> None:
    """The filter of a cell with a network changes nothing of what the machine allows."""
    unfiltered = ways(*places)
    assert ways(*places, "filtered", "open") == unfiltered
    assert unfiltered["tcp"] == unfiltered["file"] == "reached"


def test_processes_of_a_cell_talk_to_each_other(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(AMONG_ITSELF)
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=True, timeout=60
    )
    methods = [line for name in ("fork", "spawn") for line in (f"{name} [1, 2]", "3", "4")]
    assert done.stdout.splitlines() == ["hello", "hello", *methods, "loop"]


def test_a_record_says_what_is_enforced() -> None:
    assert "no_tcp" not in enforced_protections(network=True)
    assert enforced_protections(with_landlock=False, network=False)["no_tcp"] is True
