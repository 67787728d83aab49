"""The agent: a pure loop, an async runner around it, and the terminal in front of both."""
