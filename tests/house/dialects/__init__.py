"""What becomes of every field of every dialect, found out by sending it through the translation."""
