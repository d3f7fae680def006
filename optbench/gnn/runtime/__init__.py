"""Full-graph training over several processes, each with the nodes of one device."""
