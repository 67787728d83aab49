"""All kinds of fault: error responses of Google, unusual answers of the model, and failures of the network.

Each kind is a row of one of the tables `ERROR_FAULTS`, `CONTENT_FAULTS` and `NETWORK_FAULTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from dragoman.emulator.director import ApiRequest, Chunk, Fault
from dragoman.emulator.errors import (
    ApiError,
    encode_error,
    error_detail,
    invalid_key_error,
    missing_key_error,
    unsupported_token_error,
)
from dragoman.emulator.http_messages import (
    HTML_TYPE,
    SSE_TYPE,
    CloseConnection,
    ConnectionAction,
    HttpResponse,
    RefuseConnections,
    Wait,
    json_response,
)

Unit = Literal["", "seconds", "bytes"]


class FaultKind(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table of faults. `unit` is the unit of the argument, "" if the fault takes none."""

    name: str
    help: str
    unit: Unit = ""
    default: float = 0
    make: Callable[[float], Fault]


def response_fault(
    name: str, about: str, change: Callable[[HttpResponse, ApiRequest], HttpResponse]
) -> FaultKind:
    fault = Fault(name=name, change_response=change)
    return FaultKind(name=name, help=about, make=lambda _: fault)


def chunk_fault(
    name: str, about: str, change: Callable[[list[Chunk]], list[Chunk]], **more: Any
) -> FaultKind:
    fault = Fault(name=name, change_chunks=change, **more)
    return FaultKind(name=name, help=about, make=lambda _: fault)


def numeric_fault(
    name: str,
    about: str,
    unit: Unit,
    default: float,
    change: Callable[[HttpResponse, ApiRequest, float], HttpResponse],
) -> FaultKind:
    """Return a fault of the response that takes a number."""

    def make(argument: float) -> Fault:
        return Fault(
            name=name, change_response=lambda response, api_request: change(response, api_request, argument)
        )

    return FaultKind(name=name, help=about, unit=unit, default=default, make=make)


# Error responses of Google, with the texts of AI Studio and of Vertex:
# https://ai.google.dev/gemini-api/docs/troubleshooting

_METRIC = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
_QUOTA_PAGE = "https://ai.google.dev/gemini-api/docs/rate-limits"
_QUOTA_MESSAGE = (
    "You exceeded your current quota, please check your plan and billing details. For more information on "
    f"this error, head to: {_QUOTA_PAGE}. "
)
_BAD_GATEWAY_PAGE = (
    b"<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n  <title>Error 502 (Server Error)!!1</title>\n"
    b"  <p><b>502.</b> <ins>That\xe2\x80\x99s an error.</ins>\n"
    b"  <p>The server encountered a temporary error and could not complete your request.\n"
    b"  <p>Please try again in 30 seconds.  <ins>That\xe2\x80\x99s all we know.</ins>\n"
)


def error_response(refusal: ApiError, response: HttpResponse, api_request: ApiRequest) -> HttpResponse:
    """Return the error response. Vertex labels it with the content type of the requested stream."""
    refused = encode_error(refusal, api_request.framing)
    labelled = api_request.route.backend.is_vertex and api_request.framing == "sse"
    content_type = SSE_TYPE if labelled else refused.content_type
    return msgspec.structs.replace(
        refused, content_type=content_type, actions_before_head=response.actions_before_head
    )


def _quota_error(api_request: ApiRequest, *, period: str, limit: int, retry_s: float | None) -> ApiError:
    """Return a quota error; without `retry_s` it does not tell the client when to retry."""
    if api_request.route.backend.is_vertex:
        return ApiError("Resource exhausted. Please try again later.", code=429)
    model = api_request.route.model
    line = f"\n* Quota exceeded for metric: {_METRIC}, limit: {limit}, model: {model}"
    violation = {
        "quotaMetric": _METRIC,
        "quotaId": f"GenerateRequestsPer{period}PerProjectPerModel-FreeTier",
        "quotaDimensions": {"location": "global", "model": model},
        "quotaValue": str(limit),
    }
    links = [{"description": "Learn more about Gemini API quotas", "url": _QUOTA_PAGE}]
    details = [error_detail("Help", links=links), error_detail("QuotaFailure", violations=[violation])]
    if retry_s is None:
        return ApiError(_QUOTA_MESSAGE + line, code=429, details=details)
    details.append(error_detail("RetryInfo", retryDelay=f"{retry_s:g}s"))
    return ApiError(f"{_QUOTA_MESSAGE}{line}\nPlease retry in {retry_s:g}s.", code=429, details=details)


def _quota_minute(response: HttpResponse, api_request: ApiRequest, seconds: float) -> HttpResponse:
    refusal = _quota_error(api_request, period="Minute", limit=20, retry_s=seconds)
    return error_response(refusal, response, api_request)


def _bad_gateway(response: HttpResponse, api_request: ApiRequest) -> HttpResponse:
    del api_request
    return HttpResponse(
        status=502,
        content_type=HTML_TYPE,
        actions=(_BAD_GATEWAY_PAGE,),
        actions_before_head=response.actions_before_head,
    )


def _error_fault(name: str, about: str, make: Callable[[ApiRequest], ApiError]) -> FaultKind:
    return response_fault(
        name, about, lambda response, api_request: error_response(make(api_request), response, api_request)
    )


ERROR_FAULTS = (
    numeric_fault(
        "quota_minute", "429, requests per minute; retry after the argument", "seconds", 20, _quota_minute
    ),
    _error_fault(
        "quota_day",
        "429, requests per day: waiting does not help",
        lambda api_request: _quota_error(api_request, period="Day", limit=250, retry_s=None),
    ),
    _error_fault(
        "quota_zero",
        "429 with limit: 0, a model outside the plan",
        lambda api_request: _quota_error(api_request, period="Day", limit=0, retry_s=None),
    ),
    _error_fault("overloaded", "503, high demand", lambda _: ApiError(code=503)),
    _error_fault("internal", "500", lambda _: ApiError(code=500)),
    _error_fault("deadline", "504, Google gave up", lambda _: ApiError(code=504)),
    response_fault("unavailable_page", "502 with an HTML page, as a load balancer sends it", _bad_gateway),
    _error_fault("bad_key", "400 API_KEY_INVALID", lambda _: invalid_key_error()),
    _error_fault("no_key", "403, no key at all", lambda _: missing_key_error()),
    _error_fault(
        "wrong_token",
        "401, credentials of the wrong kind",
        lambda api_request: unsupported_token_error(api_request.route.method),
    ),
    _error_fault(
        "location",
        "400 FAILED_PRECONDITION, a country without the service",
        lambda _: ApiError("User location is not supported for the API use.", status="FAILED_PRECONDITION"),
    ),
)


# Faults of the model: chunks with unusual finish reasons, or without one:
# https://ai.google.dev/api/generate-content#FinishReason

_GIANT_BYTES = 4_000_000
_PRODUCED = ("candidatesTokenCount", "candidatesTokensDetails", "thoughtsTokenCount")


class _Finish(msgspec.Struct, frozen=True):
    """An answer with this finish reason.

    `partial` keeps the first half of the text of a stream. `voids` removes that text from a unary response,
    as Google does with blocked content.
    """

    reason: str
    about: str
    partial: bool = False
    voids: bool = False
    message: str = ""

    @property
    def name(self) -> str:
        return f"finish_{self.reason.lower().removeprefix('finish_reason_')}"


def _blocked(reason: str, about: str) -> _Finish:
    return _Finish(reason, f"blocked, {about}", partial=True, voids=True)


#: All finish reasons but STOP and the two about calls, which have faults of their own.
FINISHES = (
    _Finish("MAX_TOKENS", "the output cap is reached", partial=True),
    _blocked("SAFETY", "safety"),
    _blocked("RECITATION", "it repeats something protected"),
    _blocked("LANGUAGE", "a language that is not supported"),
    _blocked("BLOCKLIST", "a forbidden word"),
    _blocked("PROHIBITED_CONTENT", "prohibited content"),
    _blocked("SPII", "personal data"),
    _blocked("IMAGE_SAFETY", "safety of an image"),
    _blocked("IMAGE_PROHIBITED_CONTENT", "prohibited content of an image"),
    _blocked("IMAGE_RECITATION", "an image repeats something protected"),
    _blocked("ESCALATION", "handed to somebody else"),
    _blocked("MODEL_ARMOR", "by Model Armor, on Vertex"),
    _Finish("MALFORMED_RESPONSE", "an answer the service cannot read", message="Malformed response."),
    _Finish("TOO_MANY_TOOL_CALLS", "the model called tools without end", message="Too many tool calls."),
    _Finish(
        "MISSING_THOUGHT_SIGNATURE",
        "a call came back without its signature",
        message="Missing thought signature.",
    ),
    _Finish("CONTINUATION", "the hop limit of Gemini 4, but no token to go on with", partial=True),
    _Finish("NO_IMAGE", "no image where one was due"),
    _Finish("IMAGE_OTHER", "no image, for some other reason"),
    _Finish("OTHER", "some other reason"),
    _Finish("FINISH_REASON_UNSPECIFIED", "no reason at all"),
)
_MALFORMED = _Finish(
    "MALFORMED_FUNCTION_CALL", "", message="Malformed function call: print(default_api.get_weather(city="
)
_UNEXPECTED = _Finish("UNEXPECTED_TOOL_CALL", "", message="Unexpected tool call.")
_EMPTY = _Finish("STOP", "")


def _finish_fault(finish: _Finish, name: str = "", about: str = "") -> FaultKind:
    def end(chunks: list[Chunk]) -> list[Chunk]:
        kept = _first_half(chunks) if finish.partial else []
        candidate = {"content": {}, "finishReason": finish.reason, "index": 0}
        if finish.message:
            candidate["finishMessage"] = finish.message
        last = _last(chunks)
        usage = last["usageMetadata"] if kept else _without_output_counts(last["usageMetadata"])
        return [*kept, {**last, "candidates": [candidate], "usageMetadata": usage}]

    return chunk_fault(
        name or finish.name,
        about or f"finishReason {finish.reason}: {finish.about}",
        end,
        change_response=_clear_unary_content if finish.voids else None,
    )


def _first_half(chunks: list[Chunk]) -> list[Chunk]:
    """Return the first half of the chunks with text, at least one if there is any."""
    texts = [chunk for chunk in chunks if any(part.get("text") for part in _parts(chunk))]
    texts = [chunk for chunk in texts if not any("functionCall" in part for part in _parts(chunk))]
    return [_without_finish(chunk) for chunk in texts[: (len(texts) + 1) // 2]]


def _clear_unary_content(response: HttpResponse, api_request: ApiRequest) -> HttpResponse:
    if api_request.framing != "whole" or api_request.route.method == "countTokens" or response.status != 200:
        return response
    body = msgspec.json.decode(response.body)
    body["candidates"] = [{**candidate, "content": {}} for candidate in body.get("candidates", ())]
    body["usageMetadata"] = _without_output_counts(body.get("usageMetadata", {}))
    return msgspec.structs.replace(response, actions=json_response(body).actions)


def _without_output_counts(usage: dict[str, Any]) -> dict[str, Any]:
    left = {name: value for name, value in usage.items() if name not in _PRODUCED}
    return {**left, "totalTokenCount": left["promptTokenCount"]} if "promptTokenCount" in left else left


def _no_finish(chunks: list[Chunk]) -> list[Chunk]:
    return [*map(_without_finish, chunks)]


def _without_finish(chunk: Chunk) -> Chunk:
    if "candidates" not in chunk:
        return chunk
    unfinished = [
        {name: value for name, value in candidate.items() if name not in ("finishReason", "finishMessage")}
        for candidate in chunk["candidates"]
    ]
    return {**chunk, "candidates": unfinished}


def _stream_error(chunks: list[Chunk]) -> list[Chunk]:
    first = next((index for index, chunk in enumerate(chunks) if _has_output(chunk)), 0)
    return [*map(_without_finish, chunks[: first + 1]), ApiError(code=503).body()]


def _replace_unary_by_error(response: HttpResponse, api_request: ApiRequest) -> HttpResponse:
    """Replace a unary response by the error, because it has no middle."""
    if api_request.framing != "whole" or api_request.route.method == "countTokens":
        return response
    return error_response(ApiError(code=503), response, api_request)


def _prompt_block(chunks: list[Chunk]) -> list[Chunk]:
    last = {name: value for name, value in _last(chunks).items() if name != "candidates"}
    feedback = {"blockReason": "PROHIBITED_CONTENT"}
    if "createTime" in last:  # Vertex
        feedback["blockReasonMessage"] = "The prompt is blocked due to prohibited contents."
    usage = _without_output_counts(last["usageMetadata"])
    return [{"promptFeedback": feedback, **last, "usageMetadata": usage}]


def _giant_chunk(argument: float) -> Fault:
    def prepend(chunks: list[Chunk]) -> list[Chunk]:
        content = {"parts": [{"text": "x" * int(argument)}], "role": "model"}
        first = chunks[0] if chunks else {}
        return [{**first, "candidates": [{"content": content, "index": 0}]}, *chunks]

    return Fault(name="giant_chunk", change_chunks=prepend)


def _has_output(chunk: Chunk) -> bool:
    return any(part.get("text") or "functionCall" in part for part in _parts(chunk))


def _parts(chunk: Chunk) -> list[dict[str, Any]]:
    candidates = chunk.get("candidates", ())
    return [part for candidate in candidates for part in candidate.get("content", {}).get("parts", ())]


def _last(chunks: list[Chunk]) -> Chunk:
    """Return the last chunk, with the usage metadata that a script may omit."""
    return {"usageMetadata": {}, **(chunks[-1] if chunks else {})}


CONTENT_FAULTS = (
    chunk_fault("no_finish", "the answer ends without a finishReason", _no_finish),
    chunk_fault(
        "stream_error",
        "an error in the middle of the stream (503 for a whole answer)",
        _stream_error,
        change_response=_replace_unary_by_error,
    ),
    _finish_fault(_MALFORMED, "malformed_call", "finishReason MALFORMED_FUNCTION_CALL, no content"),
    _finish_fault(_UNEXPECTED, "unexpected_call", "finishReason UNEXPECTED_TOOL_CALL, no content"),
    _finish_fault(_EMPTY, "empty_stop", "finishReason STOP, no content"),
    chunk_fault("prompt_block", "the prompt is blocked: promptFeedback and no candidates", _prompt_block),
    *map(_finish_fault, FINISHES),
    FaultKind(
        name="giant_chunk",
        help="one chunk with so much text in front of the answer",
        unit="bytes",
        default=_GIANT_BYTES,
        make=_giant_chunk,
    ),
)


# Faults of the network: delays, closed or refused connections, wrong headers and corrupted bytes.

_NOT_UTF8 = b"\xff\xfe"
_replace = msgspec.structs.replace


def _slow_first_byte(response: HttpResponse, _: ApiRequest, seconds: float) -> HttpResponse:
    return _replace(response, actions_before_head=(*response.actions_before_head, Wait(seconds)))


def _slow_stream(response: HttpResponse, _: ApiRequest, seconds: float) -> HttpResponse:
    slow: list[ConnectionAction] = []
    for action in _at_least_two(response):
        slow += [Wait(seconds), action] if slow else [action]
    return _replace(response, actions=tuple(slow))


def _silence(response: HttpResponse, _: ApiRequest, seconds: float) -> HttpResponse:
    actions = _at_least_two(response)
    middle = (len(actions) + 1) // 2
    return _replace(response, actions=(*actions[:middle], Wait(seconds), *actions[middle:]))


def _at_least_two(response: HttpResponse) -> tuple[ConnectionAction, ...]:
    """Return the actions of the response, split in two if there is only one."""
    if len(response.actions) != 1:
        return response.actions
    first, rest = _split(response.actions, response.content_length // 2)
    return (*first, *rest)


def _cut_after(response: HttpResponse, _: ApiRequest, count: float) -> HttpResponse:
    return _close_after(response, int(count), CloseConnection())


def _reset_after(response: HttpResponse, _: ApiRequest, count: float) -> HttpResponse:
    return _close_after(response, int(count), CloseConnection(reset=True))


def _close_after(response: HttpResponse, count: int, cut: CloseConnection) -> HttpResponse:
    """Insert a cut after `count` bytes. The unsent rest stays in `actions` for the content-length."""
    sent, unsent = _split(response.actions, count)
    return _replace(response, actions=(*sent, cut, *unsent))


def _split(
    actions: Sequence[ConnectionAction], count: int
) -> tuple[list[ConnectionAction], list[ConnectionAction]]:
    """Return the actions up to byte `count`, and the rest."""
    before: list[ConnectionAction] = []
    for index, action in enumerate(actions):
        size = len(action) if isinstance(action, bytes) else 0
        if isinstance(action, bytes) and size > count:
            left = [action[:count]] if count else []
            return [*before, *left], [action[count:], *actions[index + 1 :]]
        before.append(action)
        count -= size
    return before, []


def _reset(response: HttpResponse, _: ApiRequest) -> HttpResponse:
    return _replace(
        response, actions_before_head=(*response.actions_before_head, CloseConnection(reset=True))
    )


def _connections_refused(response: HttpResponse, _: ApiRequest, seconds: float) -> HttpResponse:
    return _replace(response, actions_before_head=(*response.actions_before_head, RefuseConnections(seconds)))


def _wrong_content_type(response: HttpResponse, _: ApiRequest) -> HttpResponse:
    return _replace(response, content_type="text/plain; charset=utf-8")


def _empty_body(response: HttpResponse, _: ApiRequest) -> HttpResponse:
    return _replace(response, actions=())


def _invalid_utf8(piece: bytes) -> bytes:
    """Insert invalid bytes into the first string of the piece."""
    head, quote, rest = piece.partition(b'":"')
    return head + quote + _NOT_UTF8 + rest


def _truncated_json(piece: bytes) -> bytes:
    """Truncate the JSON but keep the end of the frame: `data: {"candi\\r\\n\\r\\n`."""
    text = piece.rstrip(b"\r\n")
    return text[: (len(text) + 1) // 2] + piece[len(text) :]


def _changing_middle_write(
    change: Callable[[bytes], bytes],
) -> Callable[[HttpResponse, ApiRequest], HttpResponse]:
    """Return a function that changes the middle piece of a response."""

    def mangle(response: HttpResponse, _: ApiRequest) -> HttpResponse:
        places = [index for index, action in enumerate(response.actions) if isinstance(action, bytes)]
        middle = places[len(places) // 2] if places else -1
        actions = (
            change(action) if index == middle and isinstance(action, bytes) else action
            for index, action in enumerate(response.actions)
        )
        return _replace(response, actions=tuple(actions))

    return mangle


def _extra_blank(response: HttpResponse, _: ApiRequest) -> HttpResponse:
    return _insert_between(response, b"\r\n\r\n")


def _comments(response: HttpResponse, api_request: ApiRequest) -> HttpResponse:
    """Insert the keep-alive comments of a proxy; blank lines if the body is JSON, which has no comments."""
    return _insert_between(
        response, b": keep-alive\r\n" if api_request.framing == "sse" and response.streamed else b"\r\n"
    )


def _insert_between(response: HttpResponse, filling: bytes) -> HttpResponse:
    """Insert bytes before every piece and after the last one."""
    filled = [action for piece in response.body_writes for action in (filling, piece)]
    return _replace(response, actions=(*filled, filling))


def _small_pieces(response: HttpResponse, _: ApiRequest, count: float) -> HttpResponse:
    size = max(1, int(count))
    actions: list[ConnectionAction] = []
    for action in response.actions:
        if isinstance(action, bytes):
            actions += [action[start : start + size] for start in range(0, len(action), size)]
        else:
            actions.append(action)
    return _replace(response, actions=tuple(actions))


NETWORK_FAULTS: tuple[FaultKind, ...] = (
    numeric_fault(
        "slow_first_byte", "nothing at all for so long, then the answer", "seconds", 5, _slow_first_byte
    ),
    numeric_fault("slow_stream", "a pause between two pieces", "seconds", 0.5, _slow_stream),
    numeric_fault("silence", "one long pause in the middle of the answer", "seconds", 60, _silence),
    numeric_fault("cut_after", "the connection ends after so much of the body", "bytes", 200, _cut_after),
    response_fault("reset", "the connection is reset before any answer", _reset),
    numeric_fault(
        "reset_after", "the connection is reset after so much of the body", "bytes", 200, _reset_after
    ),
    numeric_fault(
        "refused",
        "the connection is reset, and new ones are refused for so long",
        "seconds",
        1,
        _connections_refused,
    ),
    response_fault("wrong_content_type", "the right answer labelled text/plain", _wrong_content_type),
    response_fault(
        "invalid_utf8", "bytes that are no UTF-8 inside a string", _changing_middle_write(_invalid_utf8)
    ),
    response_fault(
        "truncated_json", "half a JSON document in a whole frame", _changing_middle_write(_truncated_json)
    ),
    response_fault("empty_body", "200 and nothing else", _empty_body),
    response_fault("extra_blank", "blank lines around the pieces (legal)", _extra_blank),
    response_fault("comments", "comment lines between the events (legal, but Google's SDK fails)", _comments),
    numeric_fault("small_pieces", "so much per network write (legal)", "bytes", 1, _small_pieces),
)
