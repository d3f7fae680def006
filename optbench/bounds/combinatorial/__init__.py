"""Lower bounds without a linear programme: lengths of chains, loads of pools, least energies,
propagation.
"""
