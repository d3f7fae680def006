"""Contents that the driver has given to Ray's object store, each once while it is in use."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from optbench.execute.ray_cluster.travelling_files import FileContent

# The driver keeps this many contents in the object store; those of running jobs are kept by Ray.
KEPT = 64


class SentContents:
    """References to contents by hash; the least recently used are given back."""

    def __init__(self, kept: int = KEPT) -> None:
        self.kept = kept
        self._references: OrderedDict[str, Any] = OrderedDict()

    def reference(self, content: FileContent) -> Any:
        """Return the reference of a content, which Ray fetches to each node once."""
        import ray

        if content.digest not in self._references:
            self._references[content.digest] = ray.put(content.content)
        self._references.move_to_end(content.digest)
        while len(self._references) > self.kept:
            self._references.popitem(last=False)
        return self._references[content.digest]

    def clear(self) -> None:
        self._references.clear()
