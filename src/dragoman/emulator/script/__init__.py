"""Scripts: what the emulator answers, step by step, and what it expects to be asked."""
