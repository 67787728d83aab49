"""The dashboard: its static files, its authentication, and the JSON API of the page."""
