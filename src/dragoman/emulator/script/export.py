"""Export recorded exchanges as a script that replays them."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.emulator.direct import DIRECTED_METHODS, ApiRequest
from dragoman.emulator.refusal import ApiError
from dragoman.emulator.routes import find_route
from dragoman.emulator.script.tape import RecordedResponse, make_step, write_step
from dragoman.emulator.validate import parse_request
from dragoman.emulator.validate.salvage import parse_valid_fields
from dragoman.errors import ConfigError

_SCRIPT_HEAD = "# Exported from a capture.\notherwise: refuse\nvalidate: false\nsteps:\n"


def write_script(exchanges: Sequence[tuple[int, str, bytes, bytes]], *, stream: bool) -> str:
    """Return a script. An exchange is (status, model, request body, response body)."""
    return _SCRIPT_HEAD + "".join(write_step(_make_capture_step(*one, stream=stream)) for one in exchanges)


def _make_capture_step(
    status: int, model: str, request: bytes, answer: bytes, *, stream: bool
) -> dict[str, object]:
    method = "streamGenerateContent" if stream else "generateContent"
    route = find_route("POST", f"/v1beta/models/{model}:{method}")
    if route is None:
        raise ConfigError(f"{model!r} is no name of a model")
    message = DIRECTED_METHODS[route.method]
    streamed = stream and status == 200
    kind = "text/event-stream" if streamed else "application/json"
    heard = RecordedResponse(
        status=status, headers={"content-type": kind}, pieces=[(0.0, answer)], streamed=streamed
    )
    try:
        read = parse_request(request, route.backend, message)
    except ApiError:
        read = parse_valid_fields(request, route.backend, message)
    return make_step(ApiRequest(route=route, request=read, raw_body=request, headers={}), heard, timing=False)
