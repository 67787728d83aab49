"""One request to Google and its answer: rounds, attempts, API keys, fallbacks, and the inlining of remote files."""
