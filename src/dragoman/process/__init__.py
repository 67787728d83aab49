"""The gateway's process: the listening socket, the HTTP server, workers and their supervisor, and process-wide tuning."""
