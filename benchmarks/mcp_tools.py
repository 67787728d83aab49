"""250 tools as ten MCP servers offer them: with realistic names, sizes and keywords."""

from __future__ import annotations

from typing import Any

from benchmarks.tool_definitions import write_prose

Json = dict[str, Any]

_SERVERS: dict[str, str] = {
    "github": "issue pull_request branch release workflow",
    "slack": "message channel thread reminder user",
    "jira": "ticket sprint board worklog version",
    "sentry": "error project alert replay team",
    "grafana": "dashboard panel datasource annotation silence",
    "postgres": "table index view query role",
    "notion": "page database block comment workspace",
    "stripe": "invoice customer refund subscription payout",
    "calendar": "event attendee room availability calendar",
    "browser": "tab element screenshot cookie download",
}
_VERBS: dict[str, str] = {
    "create": "Create a new {noun}. Fails if one with the same name exists already.",
    "list": "List every {noun} that matches the filters, newest first, page by page.",
    "get": "Get one {noun} by its id with all its fields.",
    "update": "Change the fields of a {noun} that are given and leave the others as they are.",
    "delete": "Delete a {noun} for good. This cannot be undone.",
}
_PROSE_CHARS = 900


def mcp_tools() -> list[Json]:
    """In Anthropic's form."""
    return [
        {
            "name": f"mcp__{server}__{verb}_{noun}",
            "description": _describe(server, verb, noun),
            "input_schema": _schema(verb, noun),
        }
        for server, nouns in _SERVERS.items()
        for noun in nouns.split()
        for verb in _VERBS
    ]


def _describe(server: str, verb: str, noun: str) -> str:
    head = _VERBS[verb].format(noun=noun.replace("_", " "))
    return f"{server}: {head}\n{write_prose(_PROSE_CHARS, f'{server}{verb}{noun}')}"


def _schema(verb: str, noun: str) -> Json:
    identity = {"type": "string", "description": f"The id of the {noun}", "minLength": 1, "maxLength": 64}
    fields: Json = {
        "title": {"type": "string", "description": f"What the {noun} is called", "maxLength": 256},
        "body": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Markdown", "default": None},
        "labels": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 100},
        "state": {"type": "string", "enum": ["open", "closed", "all"], "description": "Where it stands"},
        "assignee": {"type": ["string", "null"], "description": "Who is responsible, by user name"},
        "since": {"type": "string", "format": "date-time", "description": "Nothing older than this"},
        "page": {"type": "integer", "minimum": 1, "default": 1, "description": "Which page of the results"},
        "per_page": {"type": "integer", "minimum": 1, "maximum": 100, "default": 30},
    }
    required = {"create": ["title"], "list": []}.get(verb, ["id"])
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {**({"id": identity} if "id" in required else {}), **fields},
        "required": required,
        "additionalProperties": False,
    }
