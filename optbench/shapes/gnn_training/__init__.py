"""Training a graph neural network on unequal devices: parts of the graph, kernels, placement."""
