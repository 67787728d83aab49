"""One folder per dialect; a new client dialect is a folder and one line here."""

from dragoman.dialects import anthropic, gemini
from dragoman.dialects.base import ClientDialect

CLIENTS: dict[str, ClientDialect] = {anthropic.name: anthropic}

__all__ = ["CLIENTS", "anthropic", "gemini"]
