"""Tools for a Gemini program on this machine whose base URL cannot be changed: a proxy of its own, by mitmproxy."""
