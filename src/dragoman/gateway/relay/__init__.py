"""The way of one request to Google and back: attempts, keys, fallbacks, and inlining of remote files."""
