"""Export recorded exchanges as a script that replays them."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.emulator.direct import DIRECTED, Asked
from dragoman.emulator.refusal import Refusal
from dragoman.emulator.routes import find_route
from dragoman.emulator.script.tape import Heard, make_step, write_step
from dragoman.emulator.validate import parse
from dragoman.emulator.validate.salvage import salvage
from dragoman.errors import ConfigError

_HEAD = "# Exported from a capture.\notherwise: refuse\nvalidate: false\nsteps:\n"


def write_script(exchanges: Sequence[tuple[int, str, bytes, bytes]], *, stream: bool) -> str:
    """Return a script. An exchange is (status, model, request body, response body)."""
    return _HEAD + "".join(write_step(_step(*one, stream=stream)) for one in exchanges)


def _step(status: int, model: str, request: bytes, answer: bytes, *, stream: bool) -> dict[str, object]:
    method = "streamGenerateContent" if stream else "generateContent"
    route = find_route("POST", f"/v1beta/models/{model}:{method}")
    if route is None:
        raise ConfigError(f"{model!r} is no name of a model")
    message = DIRECTED[route.method]
    streamed = stream and status == 200
    kind = "text/event-stream" if streamed else "application/json"
    heard = Heard(status=status, headers={"content-type": kind}, pieces=[(0.0, answer)], streamed=streamed)
    try:
        read = parse(request, route.backend, message)
    except Refusal:
        read = salvage(request, route.backend, message)
    return make_step(Asked(route=route, request=read, raw=request, headers={}), heard, timing=False)
