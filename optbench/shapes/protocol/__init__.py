"""What the core asks of a shape, and instances of one."""
