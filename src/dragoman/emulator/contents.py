"""What stands in a request: its functions, and of each content who says it, its calls, responses and media."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Content = Mapping[str, Any]


def declarations_of(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The functions of all tools."""
    return [entry for tool in request.get("tools", ()) for entry in tool.get("functionDeclarations", ())]


def calling_config_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    config: Mapping[str, Any] = request.get("toolConfig", {}).get("functionCallingConfig", {})
    return config


def role_of(content: Content) -> str:
    """No role, or an empty one, is the user's."""
    return content.get("role") or "user"


def calls_of(content: Content) -> list[Mapping[str, Any]]:
    return [part["functionCall"] for part in content.get("parts", ()) if "functionCall" in part]


def responses_of(content: Content) -> list[Mapping[str, Any]]:
    return [part["functionResponse"] for part in content.get("parts", ()) if "functionResponse" in part]


def blob_of(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The media of a part, inline or by address."""
    return part.get("inlineData") or part.get("fileData")
