"""The deterministic model: it reads the conversation, uses the declared tools, and reports their results."""
