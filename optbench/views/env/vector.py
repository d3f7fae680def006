"""Many environments as one Gymnasium vector environment: one compiled call steps them all, whatever
their sizes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from optbench.model.instance import Bools, Floats, Ints
from optbench.views.env.batch import Batch
from optbench.views.env.episodes import (
    Source,
    check_illegal,
    draw,
    final_info,
    layout_for,
    refuse,
    step_info,
)
from optbench.views.env.layout import Observation

Stepped = tuple[Observation, Floats, Bools, Bools, dict[str, Any]]


class FleetEnv(VectorEnv[Observation, Any, Any]):
    """``num_envs`` environments like ``SchedulingEnv``: same steps, rewards, costs and infos; every
    mode of autoreset.

    With ``copy=False`` observations and masks are the kernel's own memory, which the next step
    changes.
    """

    def __init__(
        self,
        source: Source,
        num_envs: int,
        *,
        slots: int | None = None,
        modes: int | None = None,
        pools: int | None = None,
        level: int = 0,
        max_steps: int | None = None,
        illegal: str = "nothing",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
    ) -> None:
        self.num_envs, self.copy = num_envs, copy
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self._source, self._max_steps = source, max_steps
        self._raises = check_illegal(illegal) == "error"
        self.layout = layout_for(source, slots, modes, pools)
        self.single_observation_space = self.layout.observation_space()
        self.single_action_space = self.layout.action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._batch = Batch(self.layout, num_envs, level)
        self._rngs = [np.random.default_rng() for _ in range(num_envs)]
        self._steps, self._most = np.zeros((2, num_envs), dtype=np.int64)
        self._over = np.zeros(num_envs, dtype=np.bool_)

    def action_masks(self) -> Bools:
        """Which actions are allowed now, one row per environment."""
        return self._batch.masks.copy() if self.copy else self._batch.masks

    @property
    def batch(self) -> Batch:
        """The environments themselves."""
        return self._batch

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start new episodes everywhere, or where ``options["reset_mask"]`` is true; a single seed
        is counted up.
        """
        seeds = (
            [None if seed is None else seed + b for b in range(self.num_envs)]
            if not isinstance(seed, list)
            else seed
        )
        chosen = np.flatnonzero(
            (options or {}).get("reset_mask", np.ones(self.num_envs, dtype=np.bool_))
        )
        for b in chosen.tolist():
            if seeds[b] is not None:
                self._rngs[b] = np.random.default_rng(seeds[b])
            self._sit_down(b, seeds[b])
        self._begin(chosen)
        return self._seen(), self._infos()

    def step(self, actions: Any) -> Stepped:
        batch = self._batch
        again = (
            self._over
            if self.autoreset_mode is AutoresetMode.NEXT_STEP
            else np.zeros_like(self._over)
        )
        going = np.flatnonzero(~again & ~self._over)
        batch.costs[self._over] = 0.0  # already returned when the episode ended
        batch.step(actions, going)
        if self._raises and batch.illegal[going].any():
            b = int(going[batch.illegal[going].argmax()])
            refuse(batch, b, int(np.asarray(actions)[b]))
        self._steps[going] += 1
        rewards = np.where(self._over, 0.0, batch.rewards)
        over = np.zeros(self.num_envs, dtype=np.bool_)
        over[going] = batch.over[going]
        cut = np.zeros_like(over)
        cut[going] = ~over[going] & (self._steps[going] >= self._most[going])
        ended = over | cut
        final = {int(b): final_info(batch, int(b)) for b in np.flatnonzero(ended)}
        infos: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            for b, info in final.items():
                seen = {name: part[b].copy() for name, part in batch.observations.items()}
                infos = self._add_info(
                    infos, {"final_obs": seen, "final_info": info | step_info(batch, b)}, b
                )
            self._renew(np.flatnonzero(ended))
            self._over = np.zeros_like(ended)
        else:
            self._renew(np.flatnonzero(again))
            self._over = ended | (self._over & ~again)
            for b, info in final.items():
                infos = self._add_info(infos, info, b)
        return self._seen(), rewards, over, cut, infos | self._infos()

    def _renew(self, chosen: Ints) -> None:
        """Start new episodes with instances that each environment's own generator draws."""
        for b in chosen.tolist():
            self._sit_down(b, None)
        self._begin(chosen)

    def _sit_down(self, b: int, seed: int | None) -> None:
        self._batch.seat(b, draw(self._source, seed, self._rngs[b]))
        self._most[b] = self._batch[b].longest() if self._max_steps is None else self._max_steps

    def _begin(self, chosen: Ints) -> None:
        self._batch.open(chosen)
        self._steps[chosen] = 0
        self._over[chosen] = False

    def _seen(self) -> Observation:
        seen = self._batch.observations
        return {name: part.copy() for name, part in seen.items()} if self.copy else seen

    def _infos(self) -> dict[str, Any]:
        """Return the information about every environment, as whole arrays."""
        batch, everywhere = self._batch, np.ones(self.num_envs, dtype=np.bool_)
        numbers = {"cost": batch.costs.copy(), "illegal": batch.illegal, "time": batch.times.copy()}
        columns = {"action_mask": self.action_masks(), **numbers}
        return columns | {f"_{name}": everywhere for name in columns}
