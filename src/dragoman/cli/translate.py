"""`dragoman translate`: the library on the command line, one document in, one out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from dragoman import exchange as exchanges
from dragoman.cli.screen import Failure, remark, warn
from dragoman.cli.settings import Settings, add_config_flag, read_settings
from dragoman.config import model_for
from dragoman.dialects import CLIENTS
from dragoman.dialects.base import Target
from dragoman.errors import UpstreamCut, UpstreamGarbage
from dragoman.exchange import Exchange
from dragoman.tokens import new_token

UPSTREAM = "gemini"
_NAMES = (*CLIENTS, UPSTREAM)

_EXAMPLES = """\
examples:
  dragoman translate --from anthropic --to gemini request.json > upstream.json
  dragoman translate --from gemini --to anthropic answer.json
  dragoman translate --from gemini --to anthropic --request request.json --stream answer.sse
  cat request.json | dragoman translate --from anthropic --to gemini --model gemini-3.5-flash -

JSON goes to stdout; what was dropped, renamed, clamped or repaired goes to stderr."""


def run(argv: list[str]) -> int:
    """Translate a client's request, or Google's answer to it."""
    parser = _parser()
    args = parser.parse_args(argv)
    if (args.source == UPSTREAM) == (args.to == UPSTREAM):
        parser.error(f"one of --from and --to must be {UPSTREAM}, the other a client: {', '.join(CLIENTS)}")
    if args.to == UPSTREAM and (args.request or args.stream):
        parser.error(f"--request and --stream belong to --from {UPSTREAM}")
    settings = read_settings(args.config)
    body = _read(args.file)
    if args.to == UPSTREAM:
        return _translate_request(args, settings, body)
    return _translate_answer(args, settings, body)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dragoman translate",
        description="Translate a client's request to Gemini's, or Gemini's answer (JSON or SSE) to the client's.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--from", dest="source", choices=_NAMES, required=True, help="what FILE is written in"
    )
    parser.add_argument("--to", choices=_NAMES, required=True, help="what to write")
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
        raise Failure(f"{name}: {error.strerror}", code=2) from None


def _translate_request(args: argparse.Namespace, settings: Settings, body: bytes) -> int:
    exchange = _new_exchange(args.source, settings)
    request = exchange.decode(body)
    target = _target(args.model or model_for(request.model, settings.config.models), settings)
    upstream_body = exchange.encode(target)
    remark(f"model {request.model} → {target.model}")
    _write(_pretty(upstream_body), exchange)
    return 0


def _translate_answer(args: argparse.Namespace, settings: Settings, body: bytes) -> int:
    request = (
        _read(args.request) if args.request else _stand_in(args.model or _model_of(args, settings, body))
    )
    exchange, out = _answer(args, settings, request, body, stream=args.stream)
    if isinstance(exchange.failure, UpstreamCut | UpstreamGarbage) and not exchange.has_content:
        raise Failure(f"{args.file} is not a whole answer of Gemini's: {exchange.failure.message}", code=1)
    if exchange.memories:
        remark(f"{len(exchange.memories)} thought signature(s) would be kept in the store")
    _write(out if args.stream else _pretty(out), exchange)
    return 1 if exchange.failure is not None else 0


def _model_of(args: argparse.Namespace, settings: Settings, body: bytes) -> str:
    exchange, _ = _answer(args, settings, _stand_in(UPSTREAM), body, stream=False)
    return exchange.facts.model or UPSTREAM


def _answer(
    args: argparse.Namespace, settings: Settings, request: bytes, body: bytes, *, stream: bool
) -> tuple[Exchange, bytes]:
    exchange = _new_exchange(args.to, settings)
    exchange.decode(request)
    exchange.request = msgspec.structs.replace(exchange.request, stream=stream)
    exchange.encode(
        _target(model_for(args.model or exchange.request.model, settings.config.models), settings)
    )
    return exchange, exchange.open() + exchange.receive(body) + exchange.finish()


def _stand_in(model: str) -> bytes:
    """A request for an answer that came without one."""
    message = {"role": "user", "content": "?"}
    return msgspec.json.encode({"model": model, "max_tokens": 1, "messages": [message]})


def _new_exchange(client: str, settings: Settings) -> Exchange:
    config = settings.config
    switches = exchanges.Settings(
        strict_tool_validation=config.strict_tool_validation, enable_tool_calling=config.enable_tool_calling
    )
    return Exchange(CLIENTS[client], new_token=new_token, settings=switches)


def _target(model: str, settings: Settings) -> Target:
    backend = "vertex" if settings.config.backend == "vertex" else "gemini"
    return Target(model=model, backend=backend)


def _pretty(body: bytes) -> bytes:
    return msgspec.json.format(body, indent=2) + b"\n"


def _write(out: bytes, exchange: Exchange) -> None:
    for note in exchange.notes:
        warn(str(note))
    sys.stdout.buffer.write(out)
    sys.stdout.buffer.flush()
