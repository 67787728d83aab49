"""Wire formats, one package per vendor API, and the registry of client dialects.

To add a client dialect, write a package that implements `ClientDialect` and add it to `CLIENTS`.
"""

from dragoman.dialects import amazonq, anthropic, bedrock, gemini, openai_chat, openai_responses
from dragoman.dialects.base import ClientDialect

CLIENTS: dict[str, ClientDialect] = {
    anthropic.name: anthropic,
    openai_chat.name: openai_chat,
    openai_responses.name: openai_responses,
    amazonq.AmazonQ.name: amazonq.AmazonQ(),
    bedrock.ConverseClient.name: bedrock.ConverseClient(),
}

__all__ = ["CLIENTS", "amazonq", "anthropic", "bedrock", "gemini", "openai_chat", "openai_responses"]
