"""The data model of scripts: the only definition of the file format, its JSON Schema and its documentation.

The class docstrings and the descriptions of the fields are published in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Json = dict[str, Any]
FunctionNames = str | list[str]
Seconds = Annotated[float, Meta(ge=0, le=3600)]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A mapping in the file; unknown keys are errors."""


class ExactText(_Table, frozen=True):
    """A text that must be this one, without the power of a regular expression."""

    is_: Annotated[str | None, Meta(description="the whole text")] = msgspec.field(name="is", default=None)
    starts: Annotated[str | None, Meta(description="how the text begins")] = None
    sha256: Annotated[
        str | None, Meta(description="the SHA-256 of the text in UTF-8, for texts too long to write")
    ] = None


#: A regular expression to search for, or an exact text.
TextCondition = str | ExactText

ScriptMethod = Literal["generate", "stream", "count"]


class Conditions(_Table, frozen=True):
    """Which requests are meant; all that is said must hold."""

    says: Annotated[
        TextCondition | None, Meta(description="the words of the current user turn (a regular expression)")
    ] = None
    model: Annotated[str | None, Meta(description="the model's name; `*` and `?` stand for anything")] = None
    method: Annotated[
        ScriptMethod | None,
        Meta(description="the method: generate, stream or count; none said: generate or stream"),
    ] = None
    declares: Annotated[
        FunctionNames | None,
        Meta(description="functions the request declares, one name or a list; `*` works"),
    ] = None
    answers: Annotated[
        FunctionNames | None,
        Meta(description="functions whose results are the request's last content, in order"),
    ] = None
    results: Annotated[
        TextCondition | None, Meta(description="those results as JSON text (a regular expression)")
    ] = None
    system: Annotated[
        TextCondition | None, Meta(description="the system instruction (a regular expression)")
    ] = None
    request: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="the number of the request, from 1; refused ones do not count"),
    ] = None
    contains: Annotated[
        Json | None,
        Meta(description="JSON that is part of the request, in any of Google's spellings; lists in order"),
    ] = None
    header: Annotated[dict[str, str] | None, Meta(description="HTTP headers, each a regular expression")] = (
        None
    )
    any_: Annotated[
        list[Conditions] | None, Meta(description="a list of conditions of which one must hold")
    ] = msgspec.field(name="any", default=None)
    not_: Annotated[Conditions | None, Meta(description="conditions that must not all hold")] = msgspec.field(
        name="not", default=None
    )


class ReplyCall(_Table, frozen=True):
    """A function the model calls."""

    name: Annotated[str, Meta(description="the function")]
    args: Annotated[Json, Meta(description="its arguments")] = {}


class ReplyItem(_Table, frozen=True):
    """One thing the model says; exactly one of the keys."""

    thought: Annotated[
        str | None, Meta(description="a thought summary, sent only if the request asks for thoughts")
    ] = None
    text: Annotated[str | None, Meta(description="words of the answer")] = None
    call: Annotated[
        ReplyCall | None, Meta(description="a function call: `{name: …, args: {…}}`; several are parallel")
    ] = None


class StreamError(_Table, frozen=True):
    """An error in Google's shape."""

    code: Annotated[int, Meta(ge=400, le=599, description="the HTTP code")]
    message: Annotated[str | None, Meta(description="its words")] = None
    status: Annotated[str | None, Meta(description="Google's word for it, such as UNAVAILABLE")] = None


CutMode = Literal["reset"] | bool


class StreamItem(_Table, frozen=True):
    """One chunk of a stream, or something that happens between chunks."""

    parts: Annotated[list[Json] | None, Meta(description="a chunk with exactly these parts")] = None
    finish: Annotated[str | None, Meta(description="with `parts`: the finish reason of that chunk")] = None
    usage: Annotated[Json | None, Meta(description="with `parts`: the usageMetadata of that chunk")] = None
    json: Annotated[Json | None, Meta(description="a chunk that is exactly this JSON")] = None
    error: Annotated[StreamError | None, Meta(description="an error in the middle of the stream")] = None
    raw: Annotated[str | None, Meta(description="this text on the wire, nothing added")] = None
    wait: Annotated[Seconds | None, Meta(description="silence, in seconds")] = None
    cut: Annotated[CutMode | None, Meta(description="the connection ends here; `reset` ends it rudely")] = (
        None
    )


class BodyItem(_Table, frozen=True):
    """Something that is sent, or happens, in a raw HTTP answer; exactly one of the keys."""

    text: Annotated[str | None, Meta(description="text, sent in one write")] = None
    base64: Annotated[str | None, Meta(description="bytes, sent in one write")] = None
    wait: Annotated[Seconds | None, Meta(description="silence, in seconds")] = None
    cut: Annotated[CutMode | None, Meta(description="the connection ends here; `reset` ends it rudely")] = (
        None
    )


class RawResponse(_Table, frozen=True):
    """A whole HTTP answer as it goes over the wire; at most one of `body`, `json`, `pieces`."""

    status: Annotated[int, Meta(ge=200, le=599, description="the status code")] = 200
    headers: Annotated[dict[str, str], Meta(description="headers; content-type is JSON unless given")] = {}
    body: Annotated[str | None, Meta(description="the body as text")] = None
    json: Annotated[Any, Meta(description="the body as JSON")] = None
    pieces: Annotated[
        list[str | BodyItem] | None, Meta(description="the body write by write, without content-length")
    ] = None


FaultReference = str | Mapping[str, Any]


class ScriptStep(_Table, frozen=True):
    """One answer and the requests that get it; at most one of `reply`, `chunks`, `http`."""

    name: Annotated[str | None, Meta(description="what messages call this step")] = None
    when: Annotated[Conditions | None, Meta(description="which requests fit; none said: any")] = None
    times: Annotated[
        Annotated[int, Meta(ge=1)] | Literal["always"],
        Meta(description="how many requests get this step; a number or `always`"),
    ] = 1
    optional: Annotated[bool, Meta(description="it is no failure if no request comes for it")] = False
    expect: Annotated[
        Conditions | None,
        Meta(description="what must hold for the request that gets this step, or the test fails"),
    ] = None
    reply: Annotated[
        str | list[ReplyItem] | None,
        Meta(description="what the model says; ids, signatures, closing part and usage are added"),
    ] = None
    chunks: Annotated[list[StreamItem] | None, Meta(description="the stream chunk by chunk")] = None
    http: Annotated[RawResponse | None, Meta(description="the HTTP answer as it goes over the wire")] = None
    finish: Annotated[str | None, Meta(description="with `reply`: the finish reason, STOP if not said")] = (
        None
    )
    usage: Annotated[
        dict[str, Any] | None, Meta(description="with `reply`: counters of usageMetadata to replace")
    ] = None
    split: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="network writes of so many bytes")
    ] = None
    delay: Annotated[Seconds | None, Meta(description="seconds before the first byte")] = None
    pause: Annotated[Seconds | None, Meta(description="seconds between two writes")] = None
    fault: Annotated[
        FaultReference | list[FaultReference] | None,
        Meta(description="a fault's name, `{name: argument}`, or a list of them"),
    ] = None


class Script(_Table, frozen=True):
    """A play for the emulator."""

    otherwise: Annotated[
        Literal["model", "refuse"],
        Meta(
            description="what a request gets that no step fits: the deterministic model's answer, or an error"
        ),
    ] = "model"
    validate: Annotated[
        bool, Meta(description="`false` takes requests as they are, without Google's checks")
    ] = True
    steps: Annotated[
        list[ScriptStep],
        Meta(description="tried in this order: the first that fits and is not used up is played"),
    ] = []


#: The tables and their place in the file, in the order of the documentation.
TABLES: Mapping[str, type[msgspec.Struct]] = {
    "The file": Script,
    "`steps`, each": ScriptStep,
    "`when`, `expect`, `not`, and each of `any`": Conditions,
    "`says`, `results` and `system` as a mapping": ExactText,
    "`reply`, each": ReplyItem,
    "`call`": ReplyCall,
    "`chunks`, each": StreamItem,
    "`error`": StreamError,
    "`http`": RawResponse,
    "`pieces`, each that is not text": BodyItem,
}


def script_schema() -> dict[str, Any]:
    """Return the JSON Schema of a script file."""
    schema = msgspec.json.schema(Script)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Dragoman emulator script",
        **schema,
    }


def describe(table: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """Return each key of a table with its description."""
    properties = msgspec.json.schema_components([table])[1][table.__name__]["properties"]
    return [(key, properties[key].get("description", "")) for key in properties]
