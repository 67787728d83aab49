"""Accessors for the tools of a request and for the role, calls, responses and media of a content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Content = Mapping[str, Any]


def declarations_of(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the function declarations of all tools."""
    return [entry for tool in request.get("tools", ()) for entry in tool.get("functionDeclarations", ())]


def calling_config_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    config: Mapping[str, Any] = request.get("toolConfig", {}).get("functionCallingConfig", {})
    return config


def role_of(content: Content) -> str:
    """Return the role; a missing or empty role means the user."""
    return content.get("role") or "user"


def calls_of(content: Content) -> list[Mapping[str, Any]]:
    return [part["functionCall"] for part in content.get("parts", ()) if "functionCall" in part]


def responses_of(content: Content) -> list[Mapping[str, Any]]:
    return [part["functionResponse"] for part in content.get("parts", ()) if "functionResponse" in part]


def blob_of(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the inline data or the file reference of a part, or None."""
    return part.get("inlineData") or part.get("fileData")
