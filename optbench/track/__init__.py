"""MLflow as a view of the local store; the only room that imports MLflow."""
