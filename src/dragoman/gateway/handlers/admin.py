"""The admin API: give a session tools that its client did not declare, read their calls, and post results.

Routes and the OpenAPI document (`GET /openapi.json`) are generated from OPERATIONS. The docstrings of the body and
answer types are part of that document.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import Reply
from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.gateway_tools.session_state import (
    CallStatus,
    SessionCall,
    SessionToolset,
    ToolSession,
    check_session_name,
    open_call_ids,
)
from dragoman.gateway.handlers.admin_formats import (
    check_tool_config,
    decode_results,
    decode_tools,
    encode_tools,
)
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter
from dragoman.gateway.store_errors import require_store

_MAX_TOOLS_BYTES = 1024 * 1024
_MAX_RESULTS_BYTES = 16 * 1024 * 1024
_FIELD_SPELLINGS = {"tool_config": "toolConfig", "keepClientTools": "keep_client_tools"}

Described = msgspec.Meta
Json = dict[str, Any]


class SessionTools(msgspec.Struct, forbid_unknown_fields=True):
    """What a session has."""

    tools: Annotated[
        list[Json],
        Described(
            description="Functions, each as Google's functionDeclarations (a tool with some, or a bare declaration),"
            " Anthropic's (input_schema), OpenAI's Responses (flat) or Chat (nested) API declare them."
        ),
    ] = []
    toolConfig: Annotated[  # noqa: N815 (Google's name)
        Json | None, Described(description="Google's toolConfig, for the beginning of every answer.")
    ] = None
    keep_client_tools: Annotated[
        bool, Described(description="Whether the tools that the client declares itself stay declared.")
    ] = True


class SessionToolsShown(msgspec.Struct, kw_only=True):
    """What a session has, its tools in Google's form."""

    session: str
    tools: list[Json]
    toolConfig: Json | None  # noqa: N815
    keep_client_tools: bool


class Deleted(msgspec.Struct, kw_only=True):
    """The tools, the calls and the results of the session are gone."""

    session: str
    deleted: bool = True


class Results(msgspec.Struct, forbid_unknown_fields=True):
    """Results of calls that were captured."""

    results: Annotated[
        list[Json],
        Described(
            min_length=1,
            description='{"call_id", "response": object}, or "output" (text or JSON) or "error" instead of the'
            " response; or a tool_result, a function_call_output, a tool message or a functionResponse part with id.",
        ),
    ]


class ResultsTaken(msgspec.Struct, kw_only=True):
    """How many results were taken, and the calls that still wait for theirs."""

    session: str
    accepted: int
    open_calls: list[str]


class CallShown(msgspec.Struct, kw_only=True):
    """A captured call: open until its result is here, delivered once the model has answered to it."""

    id: str
    name: str
    args: Json
    status: CallStatus
    created_at: int


class Calls(msgspec.Struct, kw_only=True):
    """The calls that were captured, oldest first."""

    session: str
    calls: list[CallShown]


class ErrorBody(msgspec.Struct, kw_only=True):
    message: str
    type: str
    param: str | None
    code: str | None


class Failure(msgspec.Struct):
    """What went wrong, and at which place of the request."""

    error: ErrorBody


async def put_tools(request: RequestContext, response: ResponseWriter) -> None:
    if len(request.body) > _MAX_TOOLS_BYTES:
        raise DragomanError(f"the tools of a session take at most {_MAX_TOOLS_BYTES} bytes", kind="too_large")
    body = _decode(request, SessionTools)
    tools = decode_tools(body.tools)
    check_tool_config(body.toolConfig, tools, alone=not body.keep_client_tools)
    held = SessionToolset(tools=tools, keep_client_tools=body.keep_client_tools, tool_config=body.toolConfig)
    session = _open_session(request)
    await require_store(session.set_toolset(held))
    await _reply(response, _encode_toolset(session, held))


async def get_tools(request: RequestContext, response: ResponseWriter) -> None:
    session = _open_session(request)
    await _reply(response, _encode_toolset(session, await _require_toolset(session)))


async def delete_tools(request: RequestContext, response: ResponseWriter) -> None:
    session = _open_session(request)
    if not await require_store(session.clear()):
        raise _unknown_session(session)
    await _reply(response, Deleted(session=session.name))


async def post_results(request: RequestContext, response: ResponseWriter) -> None:
    if len(request.body) > _MAX_RESULTS_BYTES:
        raise DragomanError(f"results take at most {_MAX_RESULTS_BYTES} bytes at a time", kind="too_large")
    session = _open_session(request)
    await _require_toolset(session)
    calls = {one.id: one for one in await require_store(session.calls())}
    results = decode_results(_decode(request, Results).results)
    named: set[str] = set()
    for index, result in enumerate(results):
        _check_open(calls, result.call_id, named, f"results[{index}]")
        named.add(result.call_id)
    known = [msgspec.structs.replace(one, name=calls[one.call_id].name) for one in results]
    await require_store(session.add_results(known))
    waiting = [own for own in open_call_ids(calls.values()) if own not in named]
    await _reply(response, ResultsTaken(session=session.name, accepted=len(results), open_calls=waiting))


async def get_calls(request: RequestContext, response: ResponseWriter) -> None:
    wanted = request.query.get("status", "")
    if wanted not in ("", *_STATUSES):
        raise InvalidRequest(f"must be one of {', '.join(_STATUSES)}", where="status")
    session = _open_session(request)
    await _require_toolset(session)
    shown = [
        CallShown(id=one.id, name=one.name, args=one.args, status=one.status, created_at=one.created_s)
        for one in await require_store(session.calls())
        if wanted in ("", one.status)
    ]
    await _reply(response, Calls(session=session.name, calls=shown))


_STATUSES = ("open", "answered", "delivered")


def _check_open(calls: dict[str, SessionCall], call_id: str, named: set[str], where: str) -> None:
    if call_id not in calls:
        waiting = ", ".join(open_call_ids(calls.values())) or "none"
        raise InvalidRequest(
            f"no call {call_id!r} was captured in this session; open are: {waiting}", where=where
        )
    if calls[call_id].status != "open" or call_id in named:
        raise DragomanError(f"the call {call_id!r} has its result already", kind="conflict", where=where)


def _open_session(request: RequestContext) -> ToolSession:
    check_session_name(request.path_params["id"])
    return ToolSession(request.gateway.store.session_tools, request.caller.scope, request.path_params["id"])


async def _require_toolset(session: ToolSession) -> SessionToolset:
    held = await require_store(session.get_toolset())
    if held is None:
        raise _unknown_session(session)
    return held


def _unknown_session(session: ToolSession) -> DragomanError:
    why = f"the session {session.name!r} has no tools here, or they were kept for another gateway key"
    return DragomanError(why, kind="not_found")


def _encode_toolset(session: ToolSession, held: SessionToolset) -> SessionToolsShown:
    return SessionToolsShown(
        session=session.name,
        tools=encode_tools(held.tools),
        toolConfig=held.tool_config,
        keep_client_tools=held.keep_client_tools,
    )


def _decode(request: RequestContext, kind: type[Any]) -> Any:
    """Decode the body as `kind`; Google's field names may be in camelCase or snake_case."""
    body = jsontext.decode_leniently(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode, request.body)
    renamed = {_FIELD_SPELLINGS.get(name, name): value for name, value in body.items()}
    whole = jsontext.replace_lone_surrogates(msgspec.json.encode(renamed))
    return jsontext.decode(msgspec.json.Decoder(kind).decode, whole)


async def _reply(response: ResponseWriter, body: msgspec.Struct) -> None:
    await response.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))


class AdminOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of the admin API; `status` lists error codes besides those that every request may get."""

    method: Literal["GET", "PUT", "POST", "DELETE"]
    path: str
    handler: Callable[[RequestContext, ResponseWriter], Awaitable[None]]
    name: str
    summary: str
    answer: type[msgspec.Struct]
    body: type[msgspec.Struct] | None = None
    query: dict[str, tuple[str, ...]] = {}  # parameter name -> allowed values
    status: tuple[int, ...] = ()


OPERATIONS: tuple[AdminOperation, ...] = (
    AdminOperation(
        method="PUT",
        path="/v1/sessions/{id}/tools",
        handler=put_tools,
        name="setSessionTools",
        summary="Give a session tools; what it had before is replaced.",
        body=SessionTools,
        answer=SessionToolsShown,
        status=(400, 413),
    ),
    AdminOperation(
        method="GET",
        path="/v1/sessions/{id}/tools",
        handler=get_tools,
        name="getSessionTools",
        summary="What a session has.",
        answer=SessionToolsShown,
        status=(404,),
    ),
    AdminOperation(
        method="DELETE",
        path="/v1/sessions/{id}/tools",
        handler=delete_tools,
        name="clearSessionTools",
        summary="Take a session's tools away, and forget its calls and results.",
        answer=Deleted,
        status=(404,),
    ),
    AdminOperation(
        method="POST",
        path="/v1/sessions/{id}/results",
        handler=post_results,
        name="addSessionResults",
        summary="Bring results of captured calls; the session's next request carries them.",
        body=Results,
        answer=ResultsTaken,
        status=(400, 404, 409, 413),
    ),
    AdminOperation(
        method="GET",
        path="/v1/sessions/{id}/calls",
        handler=get_calls,
        name="getSessionCalls",
        summary="The calls that were captured, open ones marked.",
        query={"status": _STATUSES},
        answer=Calls,
        status=(400, 404),
    ),
)


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


async def get_openapi(request: RequestContext, response: ResponseWriter) -> None:
    del request
    await response.reply(Reply(200, openapi_document(), JSON_HEADERS))


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
