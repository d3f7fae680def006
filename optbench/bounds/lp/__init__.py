"""Linear programmes: their assembly, certificates and proofs in rational arithmetic."""
