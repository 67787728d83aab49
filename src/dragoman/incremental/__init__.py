"""Incremental decoding and folding of conversations, and the caches for it.

Every turn of a conversation repeats its whole history. What is in here finds the repeated part of a request body and
of a message list, so that only the new part is parsed, repaired, counted and encoded. It changes no result.
"""
