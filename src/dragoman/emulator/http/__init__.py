"""The emulator's own HTTP/1.1 server, because faults need the socket."""
