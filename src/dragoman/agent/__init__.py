"""The terminal agent: a loop without I/O (`machine`), the async runner that drives it, and the user interface."""
