"""HTTP/1.1 as bytes: pure, linear in any slicing, bounded, and nothing that two readers could read differently."""
