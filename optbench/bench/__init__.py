"""Studies and what people read of them: runner, results, statistics, pages."""
