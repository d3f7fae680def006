"""``optbench ui``: MLflow's pages on the workspace's runs, or Optuna's on its searches."""

from __future__ import annotations

import argparse
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import emit, emit_json
from optbench.cli.terminal.parser import Parser, UsageError, number

if TYPE_CHECKING:
    from optbench.track.tracking_address import TrackingAddress

DESCRIPTION = (
    "Start MLflow's server on the workspace's store and open the runs of a study: sorted by study "
    "gap, with the columns and charts of a study. Without STUDY it is the one that was run last. "
    "Ctrl-C ends the server."
)
EXAMPLES = (
    "optbench ui",
    "optbench ui quickstart --charts",
    "optbench ui --port 5001 --no-browser",
    "optbench ui --optuna",
)
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
LOCALHOST, ANYWHERE = "127.0.0.1", ("0.0.0.0", "::")


def configure(parser: Parser) -> None:
    parser.positional("study", "name of a study, or its file (default: the one run last)", "?")
    parser.flag("--charts", "open the charts of the study's runs instead of their table")
    parser.option("--port N", "default: the first free one from 5000 on", number(int, 1))
    parser.option("--host HOST", "address to listen on (default 127.0.0.1)", default=LOCALHOST)
    search = "the search of `optbench tune STUDY`, in optuna-dashboard"
    parser.option("--optuna STUDY", search, nargs="?", const="")
    parser.flag("--no-browser", "open no browser")


def run(args: argparse.Namespace) -> int:
    from optbench.track.server import free_port, server_environment, server_words
    from optbench.track.tracking_address import TrackingAddress

    if args.optuna is not None:
        journal = _journal(args.optuna or args.study or "")
        port = free_port(args.host, args.port)
        words = dashboard_words(journal, args.host, port)
        return _serve(words, args, port, "", "/", f"search {journal.parent.name}")
    place = TrackingAddress.of()
    if place.uri.startswith(("http://", "https://")):
        return _elsewhere(args, place)
    if not place.exists:
        raise UsageError(
            f"nothing is tracked here yet: there is no {place.database}; `optbench run STUDY` "
            "makes it"
        )
    port = free_port(args.host, args.port)
    words = server_words(place, args.host, port)
    page = _first_page(args)
    return _serve(words, args, port, page, "/health", place.uri, server_environment())


def _first_page(args: argparse.Namespace) -> str:
    from optbench.store.run_store import Store
    from optbench.track.first_page import first_page
    from optbench.track.tracking import Tracking

    store = Store()
    return first_page(Tracking(workspace=store.folder.parent), store, args.study, args.charts)


def _elsewhere(args: argparse.Namespace, place: TrackingAddress) -> int:
    """Show the address of a server that is already running."""
    from optbench.track.server import is_responding
    from optbench.track.tracking_address import VARIABLE

    if not is_responding(place.uri):
        remedy = "start it, or unset the variable to see this workspace's own runs"
        raise UsageError(f"no MLflow server answers at {place.uri} (${VARIABLE}); {remedy}")
    page = f"{place.uri.rstrip('/')}{_first_page(args)}"
    _announce(args, page, f"runs are tracked by the server of ${VARIABLE}")
    return exits.DONE


def _serve(
    words: list[str],
    args: argparse.Namespace,
    port: int,
    page: str,
    health: str,
    what: str,
    environment: dict[str, str] | None = None,
) -> int:
    """Run a server until Ctrl-C; ``page`` and ``health`` are parts of addresses after its own."""
    from optbench.track.server import serving
    from optbench.workspace import store

    def leave(*_: object) -> NoReturn:
        for each in SIGNALS:  # Only once, so that the server can shut down.
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    log = store() / f"ui-{port}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    address = LOCALHOST if args.host in ANYWHERE else args.host
    url = f"http://{address}:{port}"
    handlers = {each: signal.signal(each, leave) for each in SIGNALS}
    try:
        with serving(words, f"{url}{health}", log, environment) as child:
            _announce(args, f"{url}{page}", f"{what}; Ctrl-C ends it")
            child.wait()
            raise UsageError(f"the server ended with exit code {child.returncode}; {log} says why")
    except KeyboardInterrupt:
        return exits.DONE
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)


def _announce(args: argparse.Namespace, url: str, what: str) -> None:
    if args.json:
        emit_json({"url": url})
    else:
        emit(f"{url}  ({what})")
    if not args.no_browser and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(url)


def _journal(study: str) -> Path:
    """The journal of a search; without a name, that of the only search."""
    from optbench.errors import UnknownNameError
    from optbench.workspace import store

    if find_spec("optuna_dashboard") is None:
        raise UsageError(
            "--optuna needs optuna-dashboard, which is not installed; pip install "
            "'optbench[dashboard]'"
        )
    found = {path.parent.name: path for path in sorted((store() / "tune").glob("*/trials.journal"))}
    if not found:
        raise UsageError(
            f"no search has been run here: {store() / 'tune'} has no journal; `optbench tune "
            "STUDY` makes one"
        )
    if not study and len(found) == 1:
        return next(iter(found.values()))
    if study not in found:
        if not study:
            raise UsageError(
                "several searches have been run here; name one: --optuna "
                f"{' or --optuna '.join(found)}"
            )
        raise UnknownNameError("search", study, found)
    return found[study]


def dashboard_words(journal: Path, host: str, port: int) -> list[str]:
    """The command of optuna-dashboard on a journal."""
    start = "from optuna_dashboard._cli import main; main()"
    storage = (str(journal), "--storage-class", "JournalFileStorage")
    return [sys.executable, "-c", start, *storage, "--host", host, "--port", str(port)]
