"""The way to Google."""
