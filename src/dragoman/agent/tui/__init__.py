"""The terminal: what a person sees and types."""
