"""One instance, or one problem, as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from optbench.model.instance import Bools, Instance
from optbench.sim.kernel.plant import Fault
from optbench.views.env.batch import Batch, Seat
from optbench.views.env.episodes import (
    Source,
    check_illegal,
    draw,
    final_info,
    layout_for,
    refuse,
    step_info,
)
from optbench.views.env.layout import EnvError, Observation


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """A step starts one ready task in one mode, or waits for the next event;
    ``optbench.sim.kernel.observe`` names the features.

    The reward is minus the increase of the objective (of ``level``, where it has several), so that
    the rewards of a complete episode sum to minus the verifier's value. ``info["cost"]`` is the
    increase of what ``optbench.sim.kernel.fleet`` defines. An action that is not allowed does
    nothing and costs a step, or raises (``illegal="error"``). An episode terminates when every task
    has ended or nothing that is left can ever start (then ``info["verdict"]`` is None); it is
    truncated after ``max_steps``, by default more than any legal episode takes. A source that is a
    problem makes a new instance per reset.

    For another observation (a graph, say) override ``observation`` and set ``observation_space``;
    ``seat`` has instance, plant and state, ``slot_task`` what actions refer to.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(
        self,
        source: Source,
        *,
        slots: int | None = None,
        modes: int | None = None,
        pools: int | None = None,
        level: int = 0,
        max_steps: int | None = None,
        illegal: str = "nothing",
        faults: Sequence[Fault] = (),
        render_mode: None = None,
    ) -> None:
        self.render_mode = render_mode
        self._source, self._faults, self._max_steps = source, tuple(faults), max_steps
        self._raises = check_illegal(illegal) == "error"
        self.layout = layout_for(source, slots, modes, pools)
        self.observation_space = self.layout.observation_space()
        self.action_space = self.layout.action_space()
        self._batch = Batch(self.layout, 1, level)
        self._actions = np.zeros(1, dtype=np.int64)
        self._steps = self._most = 0

    @property
    def seat(self) -> Seat:
        """The instance, plant and state of the episode."""
        return self._batch[0]

    @property
    def instance(self) -> Instance:
        return self.seat.instance

    @property
    def slot_task(self) -> Any:
        """Task of each slot, -1 where it is empty."""
        return self.seat.view.slot

    def action_masks(self) -> Bools:
        """Which actions are allowed now."""
        return np.array(self._batch.masks[0])

    def observation(self) -> Observation:
        """Return a copy of the observation."""
        return {name: part[0].copy() for name, part in self._batch.observations.items()}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a new episode; ``options={"instance": ...}`` uses that instance."""
        super().reset(seed=seed)
        given = (options or {}).get("instance")
        instance = draw(self._source, seed, self.np_random) if given is None else given
        seat = self._batch.seat(0, instance, self._faults)
        self._batch.open()
        self._steps, self._most = 0, seat.longest() if self._max_steps is None else self._max_steps
        return self.observation(), step_info(self._batch, 0)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._batch.seats[0] is None:
            raise EnvError("step was called before reset; call reset first")
        if self._batch.over[0]:
            raise EnvError("the episode is over; call reset")
        self._actions[0] = action
        self._batch.step(self._actions)
        if self._raises and self._batch.illegal[0]:
            refuse(self._batch, 0, int(action))
        self._steps += 1
        over = bool(self._batch.over[0])
        cut = not over and self._steps >= self._most
        info = step_info(self._batch, 0)
        if over or cut:
            info |= final_info(self._batch, 0)
        return self.observation(), float(self._batch.rewards[0]), over, cut, info
