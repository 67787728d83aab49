"""Builders for requests to the emulator, and short ways to ask it."""

from __future__ import annotations

import json
from typing import Any

from dragoman.emulator.http_messages import HttpResponse
from dragoman.emulator.service import EmulatorService, HttpRequest

Json = dict[str, Any]

SERVICE = EmulatorService("test")
MODEL = "gemini-3.8-flash"
OLD_MODEL = "gemini-2.5-flash"
SENTINEL = "skip_thought_signature_validator"
STUDIO = "/v1beta/models/{}:{}"
VERTEX = "/v1/projects/p/locations/global/publishers/google/models/{}:{}"
PLAIN_PATHS = (
    STUDIO,
    "/v1/models/{}:{}",
    "/v1alpha/models/{}:{}",
    VERTEX,
    "/v1beta1/projects/p/locations/eu/publishers/google/models/{}:{}",
    "/v1/publishers/google/models/{}:{}",
)


def send(
    body: Any,
    *,
    model: str = MODEL,
    method: str = "generateContent",
    path: str = STUDIO,
    alt: str = "",
    key: str = "",
    service: EmulatorService = SERVICE,
) -> HttpResponse:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    target = path.format(model, method)
    return service.handle(HttpRequest(method="POST", path=target, alt=alt, key=key, body=raw))


def ask(body: Any, **options: Any) -> Json:
    """The decoded answer of an accepted unary request."""
    answer = send(body, **options)
    assert answer.status == 200, answer.body_writes[0].decode()
    decoded: Json = json.loads(b"".join(answer.body_writes))
    return decoded


def error(body: Any, **options: Any) -> Json:
    """The error object of a refused request."""
    answer = send(body, **options)
    assert answer.status == 400, answer.status
    decoded: Json = json.loads(answer.body_writes[0])["error"]
    assert (decoded["code"], decoded["status"]) == (400, "INVALID_ARGUMENT")
    return decoded


def message(body: Any, **options: Any) -> str:
    text: str = error(body, **options)["message"]
    return text


def stream(body: Any, **options: Any) -> list[Json]:
    answer = send(body, method="streamGenerateContent", alt="sse", **options)
    assert answer.status == 200, answer.body_writes[0].decode()
    return [json.loads(piece.removeprefix(b"data: ")) for piece in answer.body_writes]


def parts(answer: Json) -> list[Json]:
    found: list[Json] = answer["candidates"][0]["content"].get("parts", [])
    return found


def text(answer: Json) -> str:
    return "".join(part.get("text", "") for part in parts(answer) if not part.get("thought"))


def calls(answer: Json) -> list[tuple[str, Json]]:
    found = [part["functionCall"] for part in parts(answer) if "functionCall" in part]
    return [(call["name"], call["args"]) for call in found]


def user(*words: str) -> Json:
    return {"role": "user", "parts": [{"text": word} for word in words]}


def model_text(words: str) -> Json:
    return {"role": "model", "parts": [{"text": words}]}


def model_calls(*names: str, signature: str | None = SENTINEL, ids: bool = False) -> Json:
    """A model turn with one call per name, the first signed."""
    found: list[Json] = [{"functionCall": {"name": name, "args": {}}} for name in names]
    if ids:
        for index, part in enumerate(found):
            part["functionCall"]["id"] = f"id-{index}"
    if signature is not None:
        found[0]["thoughtSignature"] = signature
    return {"role": "model", "parts": found}


def function_responses(*names: str, ids: tuple[str, ...] = (), **response: Any) -> Json:
    found: list[Json] = [
        {"functionResponse": {"name": name, "response": response or {"output": "ok"}}} for name in names
    ]
    for part, given in zip(found, ids, strict=False):
        part["functionResponse"]["id"] = given
    return {"role": "user", "parts": found}


def talk(*contents: Json, **rest: Any) -> Json:
    return {"contents": list(contents), **rest}


def hello(**rest: Any) -> Json:
    return talk(user("hello"), **rest)


def declare(*names: str, parameters: Json | None = None, schema: Json | None = None) -> list[Json]:
    """A tools list with one function per name."""
    extra: Json = {}
    if parameters is not None:
        extra["parameters"] = parameters
    if schema is not None:
        extra["parametersJsonSchema"] = schema
    return [{"functionDeclarations": [{"name": name, "description": name, **extra} for name in names]}]
