"""The lease of one cell: a Ray task that holds its cores, memory and GPUs while the cell runs.

Ray starts it where these are free, beside the work of other users. It has the node's agent run the
cell, on cores that nobody else holds, and returns the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError
from optbench.execute.base import JobOutcome
from optbench.execute.cell_pool import EndedJob
from optbench.execute.message_channel import MessageChannel
from optbench.execute.ray_cluster.agent_socket import connect
from optbench.execute.ray_cluster.node_agent import job_from
from optbench.execute.ray_cluster.travelling_files import (
    REFERENCE,
    ContentCache,
    references,
    with_paths,
)
from optbench.sandbox.job_folder import remove_folder

# Seconds that the agent of a node may take to answer; it is started before the first lease.
AGENT_S = 20.0
AGENT_ENDED = "the agent of the node has ended"


@dataclass(frozen=True)
class Assignment:
    """A job as it travels: JSON whose files are references, and the secret of the agents."""

    secret: str
    turn: int
    job: Mapping[str, Any]
    network: bool = False


@dataclass(frozen=True)
class LeaseReport:
    """What became of a job on a node: its outcome, or the trouble of the node."""

    node_id: str
    outcome: JobOutcome | None
    trouble: str = ""


def run_leased(assignment: Assignment, contents: Sequence[Any]) -> LeaseReport:
    """Run a job on the node of this task; ``contents`` are Ray's references to the contents of its
    files, in order, in a list, so that Ray brings none here that the node has already.
    """
    import ray

    node_id = ray.get_runtime_context().get_node_id()
    gpus = tuple(str(each) for each in ray.get_gpu_ids())
    try:
        job = with_files(assignment.job, contents, ContentCache(), ray.get)
        return _run(assignment, node_id, job, gpus)
    except (OSError, OptbenchError) as error:  # a full disk, say: the job may run elsewhere
        return LeaseReport(node_id, None, str(error))


def with_files(
    job: Mapping[str, Any],
    contents: Sequence[Any],
    cache: ContentCache,
    fetch: Callable[[Any], bytes],
) -> dict[str, Any]:
    """Return the job with paths on this node; what is missing in the cache is fetched."""
    payload = job["payload"]
    places = {}
    for each, content in zip(references(payload), contents, strict=True):
        known = digest, name = each[REFERENCE], each["name"]
        places[known] = cache.find(digest, name) or cache.keep(digest, name, fetch(content))
    return {**job, "payload": with_paths(payload, places)}


def _run(
    assignment: Assignment, node_id: str, job: Mapping[str, Any], gpus: Sequence[str]
) -> LeaseReport:
    channel = connect(assignment.secret, node_id, AGENT_S)
    if channel is None:
        return LeaseReport(node_id, None, "the agent of the node does not answer")
    try:
        message = {
            "turn": assignment.turn,
            "job": job,
            "gpus": gpus,
            "network": assignment.network,
        }
        reply = _reply(channel) if channel.send(message) else None
    finally:
        channel.close()
    if reply is None:
        return LeaseReport(node_id, None, AGENT_ENDED)
    if "refused" in reply:
        return LeaseReport(node_id, None, reply["refused"])
    folder = Path(reply["folder"])
    ended = EndedJob(0, job_from(job, folder), reply["message"], reply["lost"], reply["total_s"])
    if ended.not_started:
        return LeaseReport(node_id, None, f"no process can be started: {ended.not_started}")
    outcome = ended.outcome()
    remove_folder(folder)
    return LeaseReport(node_id, replace(outcome, machine=reply["machine"]))


def _reply(channel: MessageChannel) -> dict[str, Any] | None:
    """Wait for the agent's answer; None once it has ended."""
    while (messages := channel.receive()) is not None:
        if messages:
            return messages[0]
    return None
