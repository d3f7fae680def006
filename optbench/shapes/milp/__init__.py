"""Mixed-integer linear programmes as instances: data, file formats, exact verification, proofs."""
