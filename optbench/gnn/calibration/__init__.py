"""The cost model's figures of a core of this machine, from measured training steps."""
