"""Lower bounds for arriving work: one time slot or many."""
