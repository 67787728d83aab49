"""Scripts: the answers of the emulator, step by step, and the requests that it expects."""
