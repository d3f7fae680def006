"""Training graph neural networks for real: kernels, their fusion, and what feeds them."""
