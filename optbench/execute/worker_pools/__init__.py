"""Pools of workers for trainings: processes of this machine, or actors on the nodes of Ray."""
