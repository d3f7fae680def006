"""Reading a user's graph: edges, features and labels from files, PyG data sets and databases."""
