"""What Dragoman costs beside a plain pass-through: `python -m benchmarks`."""
