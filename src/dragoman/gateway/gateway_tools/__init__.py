"""Tools that the gateway runs itself: their providers, and the runner of a request's tools."""
