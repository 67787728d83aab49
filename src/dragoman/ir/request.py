"""What a client asks, in nobody's dialect."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.ir.notebook import NOTEBOOK
from dragoman.ir.parts import Part, ServerKind, Text
from dragoman.ir.remote import RemoteServer

Role = Literal["user", "model", "system"]

#: How clients mark a remark of the program's inside a turn, and how we mark one for the model.
REMINDER = "<system-reminder>"


class Message(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One turn. `system` inside a conversation is a remark of the program, kept at its place."""

    role: Role
    parts: tuple[Part, ...]

    #: What was computed of this message: the same message comes back with every turn of a conversation.
    notebook = NOTEBOOK

    def joined(self, other: Message) -> Message:
        """What both say, as this one's speaker: the very same with every turn."""
        noted: tuple[Message, Message] | None = self.notebook.get("joined to")
        if noted is None or noted[0] is not other:
            whole = Message(role=self.role, parts=self.parts + other.parts)
            noted = self.notebook["joined to"] = other, whole
        return noted[1]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function the model may call; `schema` is the JSON text of its JSON Schema, untouched.

    `native` is the whole declaration where it already came in Gemini's own form. A `deferred` one need not be shown
    to the model before a search has found it.
    """

    name: str
    description: str = ""
    schema: bytes = b"{}"
    where: str = ""
    native: bytes = b""
    deferred: bool = False


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """Roughly where the user is."""

    city: str = ""
    region: str = ""
    country: str = ""
    timezone: str = ""


#: How tools are searched for: with a regular expression, with words, or by their names and those of their groups.
SearchBy = Literal["pattern", "words", "paths"]


class ServerTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool the service is asked to run for the model by itself; `forced` means that it must be used.

    `by` is for a search for tools.
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
    """`auto` may call, `any` must call, `none` must not; `names` narrows the choice."""

    mode: Literal["auto", "any", "none", "validated"] = "auto"
    names: tuple[str, ...] = ()
    parallel: bool = True


Effort = Literal["minimal", "low", "medium", "high", "max"]


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """How hard to think: a budget in tokens or an effort; `show` asks for the thoughts themselves.

    `own` is said elsewhere, in the model's own words, or left to it.
    """

    mode: Literal["default", "off", "on", "own"] = "default"
    budget_tokens: int | None = None
    effort: Effort | None = None
    show: bool = False


class OutputFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The answer must be JSON, of this JSON Schema (JSON text) if one is given."""

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
    """`native` is what only Gemini's own dialect can say: places such as `generationConfig.speechConfig`, each
    with its JSON text; an entry at `tools` is one more tool.

    `found` names the deferred tools that the conversation has found or called, in that order.
    """

    model: str
    messages: tuple[Message, ...]
    system: tuple[Text, ...] = ()
    tools: tuple[Tool, ...] = ()
    found: tuple[str, ...] = ()
    server_tools: tuple[ServerTool, ...] = ()
    remotes: tuple[RemoteServer, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    thinking: Thinking = Thinking()
    sampling: Sampling = Sampling()
    output: OutputFormat | None = None
    stream: bool = False
    session: str = ""
    native: tuple[tuple[str, bytes], ...] = ()
