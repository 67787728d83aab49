"""`GET /openapi.json`: the description of the admin API, generated from the table and types that serve it."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from dragoman.dialects.base import Reply
from dragoman.server.admin import OPERATIONS, AdminOperation, Failure
from dragoman.server.converse import RequestContext
from dragoman.server.http import JSON_HEADERS, ResponseWriter

_ERROR_DESCRIPTIONS = {
    400: "The request cannot be understood; `param` names the place.",
    401: "No gateway key was shown; a key of Google's is not enough.",
    403: "Requests from web pages are refused.",
    404: "The session has no tools here.",
    409: "The call has its result already.",
    413: "The body is too large.",
    503: "The state cannot be reached, or the gateway is stopping; come again.",
}
_COMMON_ERRORS = (401, 403, 503)
_DESCRIPTION = (
    "Tools that the gateway injects into a session's requests. Calls to them never reach the client: they are captured"
    " here and wait for their results."
)


async def get_openapi(call: RequestContext, outlet: ResponseWriter) -> None:
    del call
    await outlet.reply(Reply(200, openapi_document(), JSON_HEADERS))


@cache
def openapi_document() -> bytes:
    """Return the OpenAPI document as JSON."""
    from importlib.metadata import version  # large, and needed only here

    kinds = [Failure, *(kind for one in OPERATIONS for kind in (one.body, one.answer) if kind is not None)]
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {"parameters": [_SESSION_PARAMETER]})[one.method.lower()] = (
            _encode_operation(one)
        )
    keys = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A gateway key."},
        "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    }
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Dragoman admin API",
                "version": version("dragoman"),
                "description": _DESCRIPTION,
            },
            "paths": paths,
            "components": {"schemas": components, "securitySchemes": keys},
            "security": [{name: []} for name in keys],
        }
    )


_SESSION_PARAMETER = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The session as its client names it, or as the header x-dragoman-session does.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 512},
}


def _encode_operation(one: AdminOperation) -> dict[str, Any]:
    responses = {"200": _schema_content(one.answer, one.answer.__doc__ or "")}
    responses |= {
        str(code): _schema_content(Failure, _ERROR_DESCRIPTIONS[code])
        for code in sorted({*one.status, *_COMMON_ERRORS})
    }
    described: dict[str, Any] = {"operationId": one.name, "summary": one.summary, "responses": responses}
    if one.query:
        described["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string", "enum": list(words)}}
            for name, words in one.query.items()
        ]
    if one.body is not None:
        described["requestBody"] = {"required": True, **_schema_content(one.body)}
    return described


def _schema_content(kind: type[msgspec.Struct], description: str = "") -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{kind.__name__}"}
    content = {"application/json": {"schema": schema}}
    return {"description": description, "content": content} if description else {"content": content}
