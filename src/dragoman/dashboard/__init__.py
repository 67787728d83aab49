"""The dashboard's data and its static files; no HTTP and no store access."""
