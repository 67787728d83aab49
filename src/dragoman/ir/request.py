"""A client's request, independent of its dialect."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.ir.parts import Part, ServerKind, Text
from dragoman.ir.remote import RemoteMcpServer

Role = Literal["user", "model", "system"]

#: The tag with which clients mark text of the program (not of the user) inside a turn; the gateway uses it too.
REMINDER = "<system-reminder>"


class Message(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One turn. A `system` message inside a conversation is an instruction of the program and keeps its position.

    The instance dictionary (`dict=True`) belongs to `dragoman.incremental.fold`, not to the value.
    """

    role: Role
    parts: tuple[Part, ...]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function the model may call; `schema` is the JSON text of its JSON Schema, as the client sent it.

    `native` is the whole declaration if a Gemini client sent it. A `deferred` tool need not be declared to the model
    before a tool search has found it. `where` is its path in the client's request, for notes and errors.
    """

    name: str
    description: str = ""
    schema: bytes = b"{}"
    where: str = ""
    native: bytes = b""
    deferred: bool = False


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """The user's approximate location."""

    city: str = ""
    region: str = ""
    country: str = ""
    timezone: str = ""


#: How a tool search works: by regular expression, by words (BM25), or by the names of tools and groups of tools.
SearchBy = Literal["pattern", "words", "paths"]


class ServerTool(msgspec.Struct, frozen=True, kw_only=True):
    """A server-side tool that the client requests; `forced` means that the model must use it.

    `by` applies to `tool_search` only.
    """

    kind: ServerKind
    name: str = ""
    where: str = ""
    max_uses: int | None = None
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    location: Location | None = None
    forced: bool = False
    by: SearchBy = "words"


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the model may (`auto`), must (`any`) or must not (`none`) call a tool; `names` restricts which.

    `validated` is Gemini's mode VALIDATED: text or a call that fits its schema.
    """

    mode: Literal["auto", "any", "none", "validated"] = "auto"
    names: tuple[str, ...] = ()
    parallel: bool = True


Effort = Literal["minimal", "low", "medium", "high", "max"]


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """How much to think: a budget in tokens or an effort; `show` asks for the thoughts in the answer.

    With the mode `own` the model's default applies, or a setting in `Request.native`.
    """

    mode: Literal["default", "off", "on", "own"] = "default"
    budget_tokens: int | None = None
    effort: Effort | None = None
    show: bool = False


class OutputFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The answer must be JSON, and match `schema` (the JSON text of a JSON Schema) if it is set."""

    schema: bytes | None = None


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: tuple[str, ...] = ()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded request.

    `native` are fields that only the Gemini dialect can express, as pairs of path and JSON text, such as
    `generationConfig.speechConfig`; an entry with the path `tools` is one more tool. `found` names the deferred tools
    that the conversation has found or called, in that order.
    """

    model: str
    messages: tuple[Message, ...]
    system: tuple[Text, ...] = ()
    tools: tuple[Tool, ...] = ()
    found: tuple[str, ...] = ()
    server_tools: tuple[ServerTool, ...] = ()
    remotes: tuple[RemoteMcpServer, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    thinking: Thinking = Thinking()
    sampling: Sampling = Sampling()
    output: OutputFormat | None = None
    stream: bool = False
    session: str = ""
    native: tuple[tuple[str, bytes], ...] = ()
