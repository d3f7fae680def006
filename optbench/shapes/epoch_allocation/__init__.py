"""Which jobs share which GPUs in one epoch: the allocation ILP over patterns of alike jobs."""
