"""A connection to a running Ray cluster: joining it, its nodes, and whether they compute the same.

``optbench run``, ``tune`` and ``train`` connect through ``connected``. Plug-ins travel to the nodes
as the runtime environment; optbench and its packages must be installed there in the same versions,
which is checked on every node before it is used.
"""

from __future__ import annotations

import logging
import os
import socket
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError
from optbench.execute.ray_cluster import node_facts
from optbench.execute.ray_cluster.cluster_probe import PROBE_S, ClusterAnswer, probe
from optbench.execute.ray_cluster.kept_signals import own_sigterm
from optbench.execute.ray_cluster.plugin_package import imported_modules, package_plugins
from optbench.execute.ray_cluster.ray_messages import ray_messages_in_a_file
from optbench.units import BYTES_PER_MB
from optbench.workspace import KEEPS_IN, VARIABLE

ADDRESS_VARIABLE = "RAY_ADDRESS"
# Seconds until an address that does not answer is given up; Ray itself tries for minutes.
ANSWER_S = 5.0
# Seconds that a node may take for its facts: it unpacks the plug-ins and starts a process.
FACTS_S = 120.0
NONE_HERE = (
    "no Ray cluster runs on this machine; start one with `ray start --head`, or name its address "
    "with --address HOST:PORT or $RAY_ADDRESS"
)
NODE_LABEL = "ray.io/node-id"
SHOWN_DIFFERENCES = 3
# Settings that travel, except those that name folders of one machine.
SETTINGS = "OPTBENCH_"
FOLDERS_OF_A_MACHINE = (
    *(VARIABLE, KEEPS_IN, "OPTBENCH_CACHE", "OPTBENCH_DATA"),
    "OPTBENCH_CORE_LOCKS",
)


class ClusterError(OptbenchError):
    """The cluster cannot be reached or used; the message says what to do."""


class ClusterMismatchError(ClusterError):
    """A node has other versions than the driver; names the node, the package and both versions."""


@dataclass(frozen=True)
class ClusterNode:
    """A node that is alive, and what Ray may give away there."""

    node_id: str
    host: str
    address: str
    cpus: float
    gpus: float
    memory_mb: float

    @property
    def name(self) -> str:
        """``host (address, first digits of its id)``: several nodes may share a host."""
        return f"{self.host} ({self.address}, {self.node_id[:8]})"


@dataclass
class ClusterConnection:
    """A joined cluster. ``facts`` holds what each checked node has, by its id."""

    address: str
    here: dict[str, Any]
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def nodes(self) -> tuple[ClusterNode, ...]:
        """Return the nodes that are alive now."""
        return tuple(_node(row) for row in load_ray().nodes() if row["Alive"])

    def check_nodes(self) -> tuple[ClusterNode, ...]:
        """Check every node that is alive, and return them; raise ClusterMismatchError if one has
        other versions than this process.
        """
        nodes = self.nodes()
        found = self.mismatches([node for node in nodes if node.node_id not in self.facts])
        if found:
            raise ClusterMismatchError(
                f"{'; '.join(found.values())}. Install the same versions on every node (pip "
                "install -r of one `pip freeze`), or leave the node out of the cluster"
            )
        return nodes

    def mismatches(self, nodes: Collection[ClusterNode]) -> dict[str, str]:
        """Gather the facts of nodes; return how a node differs, by the ids of those that do. A node
        that was lost meanwhile is in neither.
        """
        from ray.exceptions import GetTimeoutError, RayError

        ray = load_ray()
        ray.cloudpickle.register_pickle_by_value(node_facts)
        gather = ray.remote(node_facts.facts_of_this_machine)
        packages = list(self.here["packages"])
        asked = {
            node: gather.options(
                num_cpus=0, max_retries=0, label_selector=on_nodes([node.node_id])
            ).remote(packages)
            for node in nodes
        }
        wrong: dict[str, str] = {}
        for node, reply in asked.items():
            try:
                found = ray.get(reply, timeout=FACTS_S)
            except GetTimeoutError:
                wrong[node.node_id] = f"node {node.name}: no answer within {FACTS_S:g} s"
                continue
            except RayError as error:
                if node.node_id in {each.node_id for each in self.nodes()}:
                    wrong[node.node_id] = f"node {node.name}: {first_line(error)}"
                continue
            different = node_facts.differences(self.here, found)
            if different:
                more = len(different) - SHOWN_DIFFERENCES
                shown = ", ".join(different[:SHOWN_DIFFERENCES])
                rest = f", and {more} more differences" if more > 0 else ""
                wrong[node.node_id] = f"node {node.name} has {shown}{rest}"
            else:
                self.facts[node.node_id] = found
        return wrong


@contextmanager
def connected(address: str | None = None) -> Iterator[ClusterConnection]:
    """Join the cluster at ``address`` and leave it at the end, which ends all that was started
    there for this process.

    Without an address it is that of $RAY_ADDRESS, else of the cluster that runs on this machine.
    None is started: on one machine, the local engine does the same with less.
    """
    ray = load_ray()
    target = address or os.environ.get(ADDRESS_VARIABLE) or "auto"
    if ray.is_initialized():
        raise ClusterError("this process is connected to a Ray cluster already; leave it first")
    _refuse_unusable(target)
    with tempfile.TemporaryDirectory(prefix="optbench-plugins-") as folder:
        package = package_plugins(Path(folder) / "workspace")
        built_in = [
            folder for name, folder in node_facts.code_folders().items() if name != node_facts.NAME
        ]
        packages = node_facts.compared_packages(imported_modules(package, *built_in))
        here = node_facts.facts_of_this_machine(packages)
        settings = {**travelling_settings(), VARIABLE: "."}
        environment = {"working_dir": str(package), "env_vars": settings}
        try:
            with own_sigterm():
                _join(ray, target, environment)
            with ray_messages_in_a_file():
                yield ClusterConnection(ray.get_runtime_context().gcs_address, here)
        finally:
            with own_sigterm():
                ray.shutdown()


def travelling_settings() -> dict[str, str]:
    """Return optbench's settings, without those that name folders of this machine."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(SETTINGS) and name not in FOLDERS_OF_A_MACHINE
    }


def on_nodes(node_ids: Collection[str]) -> dict[str, str]:
    """Return the label selector of tasks that may run on these nodes only."""
    return {NODE_LABEL: f"in({','.join(sorted(node_ids))})"}


def load_ray() -> Any:
    """Import ray, or explain how to install it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise ClusterError(
            f"the engine 'ray' needs the package ray ({error}); pip install 'optbench[ray]'"
        ) from None
    return ray


def _refuse_unusable(target: str) -> None:
    """Refuse an address that Ray would try for minutes, that is another protocol's, or whose
    cluster does not let this user in.
    """
    if target != "auto":
        _refuse_without_answer(target)
    found = probe(target)
    where = "of this machine" if target == "auto" else f"at {target!r}"
    if found is ClusterAnswer.REFUSED:
        raise ClusterError(
            f"the cluster {where} refuses this command's token, or the command has none: $RAY_AUTH_"
            "MODE must be 'token', as on the nodes, and ~/.ray/auth_token (or $RAY_AUTH_TOKEN, "
            "$RAY_AUTH_TOKEN_PATH) must hold the token of the cluster; $RAY_AUTH_MODE is "
            f"{os.environ.get('RAY_AUTH_MODE', 'not set')} here"
        )
    if found is ClusterAnswer.UNREADABLE and target != "auto":
        raise ClusterError(
            f"something answers {where}, but not as a Ray cluster within {PROBE_S:g} s; name the "
            "address as `ray start` printed it, set $RAY_USE_TLS and its files if the cluster has "
            "TLS, and check that the version of ray is the cluster's"
        )
    if found is not ClusterAnswer.CLUSTER:
        raise ClusterError(NONE_HERE)


def _refuse_without_answer(target: str) -> None:
    """Refuse what is no address, and one at which nobody listens."""
    if "://" in target:
        raise ClusterError(
            f"address {target!r}: a connection from outside of the cluster is not supported; run "
            "this command on a node of the cluster, with --address HOST:PORT as `ray start` "
            "printed it"
        )
    host, _, port = target.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ClusterError(f"address {target!r} must be HOST:PORT, as `ray start` printed it")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_S).close()
    except OSError as error:
        raise ClusterError(
            f"no Ray cluster answers at {target!r} ({error}); start one with `ray start --head`, "
            "or name its address as `ray start` printed it"
        ) from None


def _join(ray: Any, target: str, environment: dict[str, Any]) -> None:
    """Join, with Ray's errors in one sentence."""
    try:
        ray.init(
            address=target,
            runtime_env=environment,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except ConnectionError as error:
        if target == "auto":
            raise ClusterError(NONE_HERE) from None
        raise ClusterError(f"the cluster at {target!r} cannot be joined: {error}") from None
    except (RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ClusterError(f"the cluster at {target!r} cannot be joined: {error}") from None


def first_line(error: BaseException) -> str:
    """Return the first line of an error, without the trace that Ray adds."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def _node(row: dict[str, Any]) -> ClusterNode:
    given = row["Resources"]
    return ClusterNode(
        row["NodeID"],
        row["NodeManagerHostname"],
        row["NodeManagerAddress"],
        given.get("CPU", 0.0),
        given.get("GPU", 0.0),
        given.get("memory", 0.0) / BYTES_PER_MB,
    )
