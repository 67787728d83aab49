"""Limits on request bodies, on concurrency, and on requests, tokens and money (quotas)."""
