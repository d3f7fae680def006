"""The solvers of the workspace, of the checkout and of the wheel, as one package."""

from optbench.workspace import plugin_path

__path__ = plugin_path("solvers", __path__[0])
