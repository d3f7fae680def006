"""The append-only store of a workspace: records by key, files of cells, instances by hash."""
