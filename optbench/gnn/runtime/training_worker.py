"""One process of a full-graph training: it computes the nodes of its device.

The loss is the mean over the nodes that are trained on, of which a process has a part; gradients of
the parts are added by an all-reduce. The reported loss is added exactly: losses of nodes are
rounded to multiples of 2⁻³² and added as integers, so that processes and partitions change nothing
but the rounding of a node's own loss.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from optbench.errors import ModelError
from optbench.files import write_whole
from optbench.gnn.kernels.counter_dropout import CounterDropout
from optbench.gnn.kernels.fused_network import (
    FusedNetwork,
    NetworkWidths,
    StepDropout,
    network_inputs,
)
from optbench.gnn.runtime.device_rows import DeviceRows
from optbench.gnn.runtime.halo_exchange import HaloExchange
from optbench.gnn.runtime.halo_rows import neighbour_rows
from optbench.gnn.runtime.local_graph import local_graph
from optbench.gnn.runtime.process_ranks import ProcessRanks
from optbench.gnn.runtime.section_clock import SectionClock, check_speeds, solo_speed
from optbench.gnn.runtime.training_checkpoints import (
    TrainingState,
    read_checkpoint,
    restored,
    write_checkpoint,
)
from optbench.gnn.runtime.training_job import (
    TESTED,
    TRAINED,
    UNUSED,
    VALIDATED,
    LabelledNodes,
    TrainingJob,
    fingerprint,
    read_job,
)
from optbench.gnn.runtime.training_result import RESULT, WEIGHTS, GraphTrainingResult

GRADIENTS = "gradients.pt"
# Losses are added as multiples of this.
LOSS_UNIT = 2.0**-32
SPLITS = {"train": TRAINED, "validation": VALIDATED, "test": TESTED}


class TrainingWorker:
    """A process with its part of the graph, and the parameters that every process has."""

    def __init__(self, folder: Path, ranks: ProcessRanks) -> None:
        self.folder, self.ranks, self.device = folder, ranks, ranks.device
        self.job, nodes = read_job(folder)
        job = self.job
        if job.num_devices != ranks.size:
            raise ModelError(
                f"the job has {job.num_devices} devices, and {ranks.size} processes were started; "
                "start one for each device"
            )
        self._name = self._same_job()
        self.dtype = getattr(torch, job.precision)
        gpu = self.device.type == "cuda"
        local = local_graph(nodes.graph, np.asarray(nodes.device), ranks.rank)
        self.exchange = HaloExchange(local, SectionClock(job.speeds[ranks.rank], gpu), job.overlap)
        self.exchange.to(self.device)
        self.own = own = local.own
        self.features = torch.from_numpy(nodes.features[own]).to(self.device, self.dtype)
        self.labels = torch.from_numpy(nodes.labels[own].astype(np.int64)).to(self.device)
        split = nodes.split[own]
        self.split = {
            name: torch.from_numpy(np.flatnonzero(split == value)).to(self.device)
            for name, value in SPLITS.items()
        }
        counts = np.bincount(nodes.split, minlength=TESTED + 1)
        self.counts = {name: int(counts[value]) for name, value in SPLITS.items() if value > UNUSED}
        self.network = self._made(nodes)
        self.optimizer = torch.optim.Adam(
            self._trained(), lr=job.learning_rate, weight_decay=job.weight_decay
        )
        self._pending: list[Tensor] = []

    def _made(self, nodes: LabelledNodes) -> nn.Module:
        """The network, on this process's rows."""
        job, kind = self.job, self.job.network.network
        rows = neighbour_rows(
            kind, self.exchange, nodes.graph.num_nodes, self.dtype, str(self.device)
        )
        self.fused = frozenset(job.fusions)
        widths = network_widths(job, self.features.shape[1])
        network = FusedNetwork(widths, job.seed, self.dtype).to(self.device)
        with torch.no_grad():
            sparse = job.sparse_features and self.device.type == "cpu"
            given = sparse_rows(self.features) if sparse else self.features
            self.inputs = network_inputs(kind, self.fused, rows, given)
        return network

    def _scores(self, step: int | None) -> Tensor:
        """The classes' scores of own nodes; without ``step`` nothing is dropped."""
        dropout = None if step is None else self._dropout(step)
        scores: Tensor = self.network(self.inputs, self.fused, dropout)
        return scores

    def _trained(self) -> list[nn.Parameter]:
        return [each for each in self.network.parameters() if each.requires_grad]

    def _fingerprint(self) -> str:
        """By which processes and checkpoints know their job."""
        return fingerprint(self.folder)

    def _same_job(self) -> str:
        """Refuse processes, on several machines, that were given different jobs."""
        found: list[str] = self.ranks.gathered(self._fingerprint())
        if len(set(found)) > 1:
            other = next(rank for rank, each in enumerate(found) if each != found[0])
            raise ModelError(
                f"process {other} was given another job than process 0: the graph, its values, the "
                "plan, the settings or the code of the model differ. Give each machine the same "
                "files, the same --seed, and a --work-limit (plans found within a time limit "
                "differ)"
            )
        return found[0]

    def _weights(self) -> dict[str, Any]:
        """The trained parameters by name."""
        weights: dict[str, Any] = self.network.state_dict()
        return weights

    def run(self) -> GraphTrainingResult:
        """Train from the last checkpoint, if there is one, to the end."""
        job, ranks = self.job, self.ranks
        speeds = self._solo_speeds()
        if job.only_readings:
            check_speeds(job.speeds, speeds)
        mine = read_checkpoint(self.folder) if ranks.rank == 0 else None
        state = restored(ranks.from_first(mine), self._name, self.network, self.optimizer)
        first, step_s = state.step, list[float]()
        path = self.folder / f"rows-{ranks.rank}.jsonl"
        ranks.wait_for_all()
        self.exchange.clock.begin()
        self.exchange.sent_bytes = 0
        rows = DeviceRows(path, ranks.rank, ranks.attempt, self.exchange, job.sample_s)
        while state.step < job.epochs:
            began = time.perf_counter()
            self._step(state.step)
            state.step += 1
            step_s.append(time.perf_counter() - began)
            rows.sample(state.step, state.step == job.epochs)
            if job.checkpoint_every and state.step % job.checkpoint_every == 0:
                self._checkpoint(state)
        steps = max(state.step - first, 1)
        sent = sum(ranks.gathered(self.exchange.sent_bytes)) / steps / 1e6
        self._add_losses(state)
        accuracy = self._accuracy()
        found = GraphTrainingResult(
            state.losses,
            accuracy,
            step_s,
            first,
            ranks.attempt,
            sent,
            speeds,
            ranks.gathered([asdict(row) for row in rows.rows]),
            "none" if ranks.size == 1 else "gloo" if self.device.type == "cpu" else "nccl",
        )
        if ranks.local_rank == 0:
            torch.save(self._weights(), self.folder / WEIGHTS)
            write_whole(self.folder / RESULT, json.dumps(asdict(found)))
        return found

    def _step(self, step: int) -> None:
        """One epoch of full-graph training."""
        scores = self._scores(step)
        chosen = self.split["train"]
        losses = functional.cross_entropy(scores[chosen], self.labels[chosen], reduction="none")
        self.optimizer.zero_grad()
        (losses.sum() / self.counts["train"]).backward()  # type: ignore[no-untyped-call]  # of PyTorch
        self._add_gradients()
        if self.job.keep_gradients and self.ranks.rank == 0 and step == self.job.epochs - 1:
            named = {name: p.grad for name, p in self.network.named_parameters()}
            torch.save(named, self.folder / GRADIENTS)
        self.optimizer.step()
        self._pending.append(_whole_units(losses.detach()))
        self.exchange.clock.end()

    def _add_gradients(self) -> None:
        """Add the gradients of all processes, in one message."""
        parameters = self._trained()
        given = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([each.reshape(-1) for each in given])
        with self.exchange.clock.waiting():
            self.ranks.add_up(flat)
        pieces = torch.split(flat, [p.numel() for p in parameters])
        for p, piece in zip(parameters, pieces, strict=True):
            p.grad = piece.view_as(p).clone()

    def _checkpoint(self, state: TrainingState) -> None:
        self._add_losses(state)
        if self.ranks.rank == 0:
            write_checkpoint(self.folder, self._name, state, self.network, self.optimizer)
        self.exchange.clock.begin()

    def _add_losses(self, state: TrainingState) -> None:
        """Add the losses of the steps since the last time over all processes."""
        if not self._pending:
            return
        units = self.ranks.add_up(torch.stack(self._pending).to(self.device)).tolist()
        first = state.step - len(units)
        for k, (loss, wrong) in enumerate(units):
            if wrong:
                raise ModelError(
                    f"step {first + k}: the loss of {wrong} nodes is not a number. Use a smaller "
                    "learning_rate, or features of a smaller range"
                )
            state.losses.append(loss * LOSS_UNIT / self.counts["train"])
        self._pending = []

    def _dropout(self, step: int) -> StepDropout | None:
        """What is dropped in a step: values of hidden rows and, in GAT, shares of arcs."""
        rate = self.job.network.dropout
        if not rate:
            return None
        return StepDropout(CounterDropout(rate, self.job.seed), step, self.own, attention=True)

    def _accuracy(self) -> dict[str, float]:
        """The share of nodes of each split whose class is found, without dropout."""
        with torch.no_grad():
            right = self._scores(None).argmax(1) == self.labels
        hits = [right[self.split[name]].sum() for name in SPLITS]
        total = self.ranks.add_up(torch.stack(hits)).tolist()
        counted = zip(SPLITS, total, strict=True)
        return {name: n / self.counts[name] for name, n in counted if self.counts[name]}

    def _solo_speeds(self) -> list[float]:
        """Measure throttled processes, one after the other."""
        found = 1.0
        for rank, speed in enumerate(self.job.speeds):
            if rank == self.ranks.rank and speed < 1:
                found = solo_speed(speed)
            self.ranks.wait_for_all()
        return self.ranks.gathered(found)


def sparse_rows(features: Tensor) -> Any:
    """Features as a sparse matrix."""
    from scipy.sparse import csr_array

    return csr_array(features.cpu().numpy())


def network_widths(job: TrainingJob, features: int) -> NetworkWidths:
    """The widths of a job's network: heads stand side by side in hidden layers of a GAT."""
    given = job.network
    heads = given.heads if given.network == "gat" else 1
    hidden = tuple(heads * width for width in given.hidden)
    return NetworkWidths(given.network, features, hidden, job.num_classes, heads)


def _whole_units(losses: Tensor) -> Tensor:
    """The sum of losses in units of ``LOSS_UNIT``, and how many are not finite."""
    finite = torch.isfinite(losses)
    kept = torch.where(finite, losses, torch.zeros_like(losses)).double()
    units = torch.round(kept / LOSS_UNIT).long().sum()
    return torch.stack([units, (~finite).sum()]).cpu()
