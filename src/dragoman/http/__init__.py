"""HTTP and the formats of streamed bodies: server-sent events, and Amazon's event stream encoding.

`sse` and `aws_eventstream` do no I/O; the client is in `http.client`.
"""
