"""Operators of two-layer graph neural networks as exchangeable kernels, forward and backward."""
