"""`dragoman translate`: translate one request or answer with the library."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from dragoman.cli.help_pages import new_parser
from dragoman.cli.settings import Settings, add_config_flag, read_settings
from dragoman.cli.terminal import CommandError, print_note, print_status
from dragoman.config import model_for
from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect, Target
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.errors import InvalidRequest, UpstreamIncomplete, UpstreamProtocolError
from dragoman.ids import new_id
from dragoman.translation.exchange import Exchange, TranslationOptions

UPSTREAM = "gemini"
_NAMES = (*CLIENTS, UPSTREAM)

#: Minimal requests, used to translate an answer without its request.
_PLACEHOLDER_REQUESTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "anthropic": lambda model: {
        "model": model,
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "?"}],
    },
    "openai_chat": lambda model: {"model": model, "messages": [{"role": "user", "content": "?"}]},
    "openai_responses": lambda model: {"model": model, "input": "?"},
    "amazonq": lambda model: {
        "conversationState": {
            "currentMessage": {"userInputMessage": {"content": "?", "modelId": model}},
        }
    },
    "bedrock": lambda model: {"modelId": model, "messages": [{"role": "user", "content": [{"text": "?"}]}]},
    "gemini": lambda model: {"model": model, "contents": "?"},
}

#: A member of a document that cannot be decoded -> the formats that have it, and a hint.
_DOCUMENT_HINTS: dict[str, tuple[tuple[str, ...], str]] = {
    "candidates": (("answer",), "a Gemini response: --from gemini --to CLIENT"),
    "conversationState": (("amazonq",), "a request of Amazon Q or Kiro: --from amazonq"),
    "contents": (("gemini",), "a request in Gemini's format: --from gemini --to gemini"),
    "input": (("openai_responses",), "a request to the Responses API: --from openai_responses"),
    "inferenceConfig": (("bedrock",), "a request to Bedrock's Converse: --from bedrock"),
    "messages": (
        ("anthropic", "openai_chat", "bedrock"),
        "a request to the Messages API (--from anthropic), to Chat Completions (--from openai_chat) "
        "or to Converse (--from bedrock)",
    ),
}

_EXAMPLES = """\
examples:
  dragoman translate --from anthropic --to gemini request.json > upstream.json
  dragoman translate --from openai_responses --to gemini --model gemini-3.8-flash request.json
  dragoman translate --from gemini --to openai_chat answer.json
  dragoman translate --from gemini --to anthropic --request request.json --stream answer.sse
  dragoman translate --from gemini --to gemini contents.json      # how the gateway rewrites a Gemini request
  cat request.json | dragoman translate --from openai_chat --to gemini -

A response may be a JSON object, a JSON array or an event stream. JSON goes to stdout; what was dropped, renamed,
clamped or repaired goes to stderr."""


def run(argv: list[str]) -> int:
    """Translate a client's request, or Google's answer to it."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if UPSTREAM not in (args.source, args.to):
        parser.error(f"one of --from and --to must be {UPSTREAM}, the other a client: {', '.join(_NAMES)}")
    if args.source != UPSTREAM and (args.request or args.stream):
        parser.error(f"--request and --stream belong to an answer: --from {UPSTREAM}")
    settings = read_settings(args.config)
    body = _read(args.file)
    if _is_request(args, body):
        return _translate_request(args, settings, body)
    return _translate_answer(args, settings, body)


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "translate",
        "Translate a client's request to Gemini's, or Gemini's answer (JSON or SSE) to the client's.",
        _EXAMPLES,
    )
    parser.add_argument("--from", dest="source", choices=_NAMES, required=True, help="the format of FILE")
    parser.add_argument("--to", choices=_NAMES, required=True, help="the format to write")
    parser.add_argument("--model", help="Gemini model (default: what the request's model maps to)")
    parser.add_argument("--request", metavar="FILE", help="the client's request that the answer belongs to")
    parser.add_argument("--stream", action="store_true", help="write the answer as the client's event stream")
    add_config_flag(parser)
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="input, - for stdin (default)")
    return parser


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}", code=2) from None


def _is_request(args: argparse.Namespace, body: bytes) -> bool:
    """Return whether the body is a request; from Gemini to Gemini the document itself must show it."""
    if args.source != UPSTREAM:
        return True
    return args.to == UPSTREAM and not args.request and not args.stream and "contents" in _members(body)


def _members(body: bytes) -> frozenset[str]:
    try:
        return frozenset(msgspec.json.decode(body, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return frozenset()


def _translate_request(args: argparse.Namespace, settings: Settings, body: bytes) -> int:
    exchange = _new_exchange(args.source, args.model, settings)
    _decode(exchange, body, args.source)
    named = exchange.request.model
    target = _target(args.model or model_for(named, settings.config.models), settings)
    upstream_body = exchange.encode(target)
    print_status(f"model {named or '(none named)'} → {target.model}")
    _write(_pretty(upstream_body), exchange)
    return 0


def _translate_answer(args: argparse.Namespace, settings: Settings, body: bytes) -> int:
    exchange, out = _answer(
        args, settings, _request_for_answer(args, settings, body), body, stream=args.stream
    )
    if isinstance(exchange.failure, UpstreamIncomplete | UpstreamProtocolError) and not exchange.has_content:
        why = f"{args.file} is not a complete Gemini response: {exchange.failure.message}"
        raise CommandError(why, hint=_hint(body, "answer"), code=1)
    if exchange.store_entries:
        print_status(f"{len(exchange.store_entries)} thought signature(s) would be stored")
    _write(out if args.stream else _pretty(out), exchange)
    return 1 if exchange.failure is not None else 0


def _request_for_answer(args: argparse.Namespace, settings: Settings, body: bytes) -> bytes:
    """Return the request of the answer, or a minimal one."""
    if args.request:
        return _read(args.request)
    return _placeholder_request(args.to, args.model or _model_of(args, settings, body))


def _model_of(args: argparse.Namespace, settings: Settings, body: bytes) -> str:
    exchange, _ = _answer(args, settings, _placeholder_request(args.to, UPSTREAM), body, stream=False)
    return exchange.summary.model or UPSTREAM


def _answer(
    args: argparse.Namespace, settings: Settings, request: bytes, body: bytes, *, stream: bool
) -> tuple[Exchange, bytes]:
    exchange = _new_exchange(args.to, args.model, settings)
    _decode(exchange, request, args.to)
    exchange.request = msgspec.structs.replace(exchange.request, stream=stream)
    exchange.encode(
        _target(model_for(args.model or exchange.request.model, settings.config.models), settings)
    )
    return exchange, exchange.open() + exchange.receive(body) + exchange.finish()


def _decode(exchange: Exchange, body: bytes, client: str) -> None:
    try:
        exchange.decode(body)
    except InvalidRequest as error:
        raise CommandError(str(error), hint=_hint(body, client)) from None


def _hint(body: bytes, expected: str) -> str:
    """Return a hint about the format of the document, if it is not the expected one."""
    members = _members(body)
    owners, description = next(
        (_DOCUMENT_HINTS[member] for member in _DOCUMENT_HINTS if member in members), ((expected,), "")
    )
    return "" if expected in owners else f"this looks like {description}"


def _placeholder_request(client: str, model: str) -> bytes:
    return msgspec.json.encode(_PLACEHOLDER_REQUESTS[client](model))


def _new_exchange(client: str, model: str | None, settings: Settings) -> Exchange:
    config = settings.config
    options = TranslationOptions(
        strict_tool_validation=config.strict_tool_validation, enable_tool_calling=config.enable_tool_calling
    )
    dialect: ClientDialect = GeminiClient(model or "") if client == UPSTREAM else CLIENTS[client]
    return Exchange(dialect, new_id=new_id, options=options, created_s=int(time.time()))


def _target(model: str, settings: Settings) -> Target:
    backend = "vertex" if settings.config.backend == "vertex" else "gemini"
    return Target(model=model, backend=backend)


def _pretty(body: bytes) -> bytes:
    return msgspec.json.format(body, indent=2) + b"\n"


def _write(out: bytes, exchange: Exchange) -> None:
    for note in exchange.notes:
        print_note(str(note))
    sys.stdout.buffer.write(out)
    sys.stdout.buffer.flush()
