"""The deterministic model: it reads the conversation, calls the declared tools, and reports their results."""
