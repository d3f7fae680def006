"""Learning: rollouts in the event kernel, networks, soft actor-critic, multipliers, checkpoints.
torch is imported only here.
"""
