"""Requests to Google's APIs: endpoints, credentials, keys, retries and the HTTP client."""
