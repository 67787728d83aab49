"""Generate values from schemas: arguments and JSON answers that are valid, and use the user's text."""
