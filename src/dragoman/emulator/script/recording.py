"""Convert exchanges to the steps of a script, and captured exchanges to a whole script.

A step replays the same bytes, and its conditions detect when the requests of a program change.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.director import DIRECTED_METHODS, ApiRequest
from dragoman.emulator.errors import ApiError
from dragoman.emulator.routes import GeminiRoute, find_route
from dragoman.emulator.script.match import RequestView, text_sha256
from dragoman.emulator.validate import parse_request
from dragoman.emulator.validate.parser import parse_valid_fields
from dragoman.errors import ConfigError

#: A longer text is written as its beginning and its digest.
_MAX_EXACT_CHARS = 400
_SHOWN_CHARS = 200
_KEPT_HEADERS = ("content-type", "retry-after")
_EXPECTED_FIELDS = ("generationConfig", "toolConfig")
_MIN_SECRET_CHARS = 8


class RecordedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded response: each piece has the seconds since the previous one.

    `cut` means that the connection closed before the end of the body.
    """

    status: int
    headers: Mapping[str, str]
    pieces: Sequence[tuple[float, bytes]]
    streamed: bool
    cut: bool = False


def make_step(api_request: ApiRequest, recorded: RecordedResponse, *, timing: bool) -> dict[str, Any]:
    """Return the step as a dict.

    `when` distinguishes the request from concurrent ones; `expect` has its other properties.
    """
    view = RequestView(api_request, 0)
    expect: dict[str, Any] = {}
    if view.system:
        expect["system"] = _exact_text(view.system)
    if view.declared_functions:
        expect["declares"] = view.declared_functions
    if view.results:
        expect["results"] = _exact_text(view.results)
    settings = {name: view.request[name] for name in _EXPECTED_FIELDS if name in view.request}
    if settings:
        expect["contains"] = msgspec.to_builtins(settings)
    step: dict[str, Any] = {
        "when": {
            "method": view.method,
            "model": view.model,
            "says": _exact_text(view.user_text),
            "answers": view.answered_functions,
        }
    }
    if expect:
        step["expect"] = expect
    if timing and recorded.pieces and recorded.pieces[0][0] >= 0.001:
        step["delay"] = round(recorded.pieces[0][0], 3)
    return {**step, "http": _raw_response(recorded, timing=timing)}


def mask_secrets(recorded: RecordedResponse, secrets: Sequence[str]) -> RecordedResponse:
    """Return the response with all secrets replaced by as many `x`."""
    found = [secret.encode() for secret in secrets if len(secret) >= _MIN_SECRET_CHARS]
    whole = b"".join(piece for _, piece in recorded.pieces)
    if not any(secret in whole for secret in found):
        return recorded
    for secret in found:
        whole = whole.replace(secret, b"x" * len(secret))
    hidden: list[tuple[float, bytes]] = []
    start = 0
    for seconds, piece in recorded.pieces:
        hidden.append((seconds, whole[start : start + len(piece)]))
        start += len(piece)
    return msgspec.structs.replace(recorded, pieces=hidden)


def write_step(step: dict[str, Any], secrets: Sequence[str] = ()) -> str:
    """Return a step as a YAML item of `steps:`."""
    import yaml  # imported here because only recordings need it

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump([step], Dumper=dumper, sort_keys=False, allow_unicode=True, width=2**30)
    for secret in secrets:
        if len(secret) >= _MIN_SECRET_CHARS:
            text = text.replace(secret, "x" * len(secret))
    return text


def _exact_text(text: str) -> dict[str, str]:
    return (
        {"is": text}
        if len(text) <= _MAX_EXACT_CHARS
        else {"starts": text[:_SHOWN_CHARS], "sha256": text_sha256(text)}
    )


def _raw_response(recorded: RecordedResponse, *, timing: bool) -> dict[str, Any]:
    kept = {name: recorded.headers[name] for name in _KEPT_HEADERS if name in recorded.headers}
    response: dict[str, Any] = {"status": recorded.status, "headers": kept}
    body = b"".join(piece for _, piece in recorded.pieces)
    text = _as_text(body)
    if not recorded.streamed and not recorded.cut and text is not None:
        return {**response, "body": text}
    pieces: list[Any] = []
    for index, (seconds, piece) in enumerate(recorded.pieces):
        if timing and index and seconds >= 0.001:
            pieces.append({"wait": round(seconds, 3)})
        text = _as_text(piece)
        pieces.append({"base64": base64.b64encode(piece).decode()} if text is None else text)
    if recorded.cut:
        pieces.append({"cut": True})
    return {**response, "pieces": pieces}


def _as_text(piece: bytes) -> str | None:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return None


_SCRIPT_HEAD = "# Exported from a capture.\notherwise: refuse\nvalidate: false\nsteps:\n"


def write_script(exchanges: Sequence[tuple[int, str, bytes, bytes]], *, stream: bool) -> str:
    """Return a script. An exchange is (status, model, request body, response body)."""
    return _SCRIPT_HEAD + "".join(write_step(_make_capture_step(*one, stream=stream)) for one in exchanges)


def _make_capture_step(
    status: int, model: str, request: bytes, response: bytes, *, stream: bool
) -> dict[str, object]:
    method = "streamGenerateContent" if stream else "generateContent"
    route = find_route("POST", f"/v1beta/models/{model}:{method}")
    if route is None:
        raise ConfigError(f"{model!r} is no name of a model")
    streamed = stream and status == 200
    kind = "text/event-stream" if streamed else "application/json"
    recorded = RecordedResponse(
        status=status, headers={"content-type": kind}, pieces=[(0.0, response)], streamed=streamed
    )
    return make_step(parse_api_request(route, request, {}), recorded, timing=False)


def parse_api_request(route: GeminiRoute, body: bytes, headers: Mapping[str, str]) -> ApiRequest:
    """Return the request as the emulator sees it when it plays the script."""
    message = DIRECTED_METHODS[route.method]
    try:
        request = parse_request(body, route.backend, message)
    except ApiError:
        request = parse_valid_fields(body, route.backend, message)
    return ApiRequest(route=route, request=request, raw_body=body, headers=headers)
