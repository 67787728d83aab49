"""Values out of schemas: arguments and JSON answers that are valid, and sensible where the words help."""
