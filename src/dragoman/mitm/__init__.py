"""A local mitmproxy that adds tools to Gemini programs whose base URL cannot be changed."""
