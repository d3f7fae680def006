"""The operator graph of a model's code: what each operator costs, and what can be fused."""
