"""What a browser sees of the gateway: values for the page, and the page itself; no sockets, no store."""
