"""Self-contained replay: states, masks, options, rewards and next states, in a ring buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True, eq=False)
class ReplayBatch:
    """Transitions as tensors; ``done`` is 1 at the end of an episode."""

    state: torch.Tensor
    mask: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    following: torch.Tensor
    following_mask: torch.Tensor
    done: torch.Tensor


class Replay:
    """The most recent transitions; states are stored in half precision, which suffices for features
    of size one.
    """

    def __init__(self, room: int, width: int, options: int) -> None:
        self._state = np.zeros((room, width), dtype=np.float16)
        self._following = np.zeros((room, width), dtype=np.float16)
        self._mask = np.zeros((room, options), dtype=np.bool_)
        self._following_mask = np.zeros((room, options), dtype=np.bool_)
        self._action = np.zeros(room, dtype=np.int64)
        self._reward, self._done = (
            np.zeros(room, dtype=np.float32),
            np.zeros(room, dtype=np.float32),
        )
        self._at = self._held = 0

    def __len__(self) -> int:
        return self._held

    def add(
        self,
        state: Any,
        mask: Any,
        action: Any,
        reward: Any,
        following: Any,
        following_mask: Any,
        done: Any,
    ) -> None:
        """Add rows of transitions; the oldest are overwritten."""
        place = (self._at + np.arange(len(action))) % len(self._action)
        for column, values in (
            (self._state, state),
            (self._mask, mask),
            (self._action, action),
            (self._reward, reward),
            (self._following, following),
            (self._following_mask, following_mask),
            (self._done, done),
        ):
            column[place] = values
        self._at = int((self._at + len(action)) % len(self._action))
        self._held = min(len(self._action), self._held + len(action))

    def sample(self, size: int, rng: np.random.Generator) -> ReplayBatch:
        """Draw uniformly with replacement."""
        rows = rng.integers(self._held, size=size)
        return ReplayBatch(
            torch.from_numpy(self._state[rows].astype(np.float32)),
            torch.from_numpy(self._mask[rows]),
            torch.from_numpy(self._action[rows]),
            torch.from_numpy(self._reward[rows]),
            torch.from_numpy(self._following[rows].astype(np.float32)),
            torch.from_numpy(self._following_mask[rows]),
            torch.from_numpy(self._done[rows]),
        )
