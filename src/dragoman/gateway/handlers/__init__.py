"""The handlers of the API routes, one module per API."""
