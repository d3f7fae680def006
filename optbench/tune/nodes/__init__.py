"""Workers of a search on the nodes of a cluster."""
