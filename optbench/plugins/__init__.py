"""Plug-ins: their classes, their discovery, and the packages that hold them."""
