"""Translate requests and answers between a client's dialect and Google's, without I/O.

`exchange` is the entry point; `tool_loop` runs the rounds with gateway tools; `repair` prepares the history, and
`tool_search` declares tools only after the model has searched for them.
"""
