"""One folder per dialect; a new client dialect is a folder and one line here."""

from dragoman.dialects import anthropic, gemini, openai_chat, openai_responses
from dragoman.dialects.base import ClientDialect

CLIENTS: dict[str, ClientDialect] = {
    anthropic.name: anthropic,
    openai_chat.name: openai_chat,
    openai_responses.name: openai_responses,
}

__all__ = ["CLIENTS", "anthropic", "gemini", "openai_chat", "openai_responses"]
