"""The agent's terminal user interface."""
