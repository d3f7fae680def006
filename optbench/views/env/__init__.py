"""The environment view: an instance as a Gymnasium environment, one at a time or many in
lockstep.
"""

from optbench.views.env.batch import Batch
from optbench.views.env.layout import Layout, layout_of
from optbench.views.env.play import PlayedEpisode, play_batch
from optbench.views.env.single import SchedulingEnv
from optbench.views.env.vector import FleetEnv

__all__ = [
    "Batch",
    "FleetEnv",
    "Layout",
    "PlayedEpisode",
    "SchedulingEnv",
    "layout_of",
    "play_batch",
]
