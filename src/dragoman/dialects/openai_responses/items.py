"""Decode input items and their content parts, one at a time and independent of each other, so that they can be cached."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.media import is_data_url, mime_of, read_data_url, read_url
from dragoman.dialects.openai_responses.compaction import PREFACE, UNREADABLE, open_summary
from dragoman.dialects.openai_responses.server_tools_in import read_served
from dragoman.dialects.openai_responses.tool_search import read_call, read_output
from dragoman.dialects.openai_responses.tools import SEARCH, bare_id, decode_tool_set, flat_name
from dragoman.dialects.openai_responses.wire import Content, ImageUrl, Item, decode_content, decode_contents
from dragoman.errors import InvalidRequest
from dragoman.ir import (
    ON_THOUGHT,
    Media,
    Part,
    Role,
    SealedSignature,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    mcp_tool_name,
    unseal,
)
from dragoman.notes import Note

_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
_IMAGES = frozenset({"input_image", "output_image", "computer_screenshot", "image_url"})


def decode_parts(
    contents: str | Iterable[Content] | None, where: str, notes: list[Note]
) -> list[Text | Media]:
    """Decode content, add what was lost to `notes`, and raise `InvalidRequest` for unknown types."""
    if isinstance(contents, str):
        return [Text(text=contents)]
    return [
        part
        for index, content in enumerate(contents or ())
        for part in _decode(content, f"{where}[{index}]", notes)
    ]


def join_text(contents: Iterable[Content] | None) -> str:
    """Join the texts of a reasoning summary to paragraphs."""
    return "\n\n".join(content.text for content in contents or () if content.text)


def _decode(content: Content, where: str, notes: list[Note]) -> list[Text | Media]:
    kind = content.type
    if kind in _TEXTS or (content.text is not None and not kind):
        return [Text(text=content.text or "")]
    if kind == "refusal":
        return [Text(text=content.refusal or "")]
    if kind in _IMAGES:
        return [_image(content, where, notes)]
    if kind == "input_file":
        return _file(content, where, notes)
    if kind == "input_audio":
        return [_audio(content, where)]
    if kind == "encrypted_content":
        # A message between two agents of Codex. This gateway does not encrypt them, so this is the plain text.
        return [Text(text=content.encrypted_content or "")]
    raise InvalidRequest(f"content of type {kind!r} is not understood", where=where)


def _image(content: Content, where: str, notes: list[Note]) -> Text | Media:
    url = content.image_url.url if isinstance(content.image_url, ImageUrl) else content.image_url
    if not url:
        raise _missing_content("an image needs an image_url", content, where)
    return read_url(url, "image", f"{where}.image_url", notes)


def _file(content: Content, where: str, notes: list[Note]) -> list[Text | Media]:
    title: list[Text | Media] = [Text(text=content.filename)] if content.filename else []
    if content.file_url:
        return [*title, read_url(content.file_url, "file", f"{where}.file_url", notes)]
    data = content.file_data
    if not data:
        raise _missing_content("a file needs file_data or a file_url", content, where)
    if is_data_url(data):
        return [*title, read_data_url(data, f"{where}.file_data")]
    mime = mime_of(content.filename or "")
    if not mime:
        why = "bare base64 needs a filename that tells its type; or send a data: address"
        raise InvalidRequest(why, where=f"{where}.file_data")
    return [*title, Media(mime=mime, data=data)]


def _audio(content: Content, where: str) -> Media:
    if content.audio_url:
        return read_data_url(content.audio_url, f"{where}.audio_url")
    audio = content.input_audio
    if audio is None or not audio.data or not audio.format:
        raise InvalidRequest("audio needs data and a format", where=f"{where}.input_audio")
    return Media(mime=f"audio/{audio.format}", data=audio.data)


def _missing_content(why: str, content: Content, where: str) -> InvalidRequest:
    if content.file_id:
        return InvalidRequest("files are not kept here: send the data itself", where=f"{where}.file_id")
    return InvalidRequest(why, where=where)


_APPROVED = "The user has agreed to this call; what came of it is not known here."
_DECLINED = "The user has declined this call."

_ROLES: dict[str, Role] = {"user": "user", "assistant": "model", "system": "system", "developer": "system"}


class MergeKey(msgspec.Struct, frozen=True):
    """The key for merging items: neighbours with equal keys become one message.

    Tool results are not merged with other user items.
    """

    role: Role
    results: bool
    instructs: bool  # a system item with only text


class DecodedItem(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One decoded item.

    `sealed` are signatures for parts of neighbouring items. `tools` is the JSON of tools that the item declares.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    sealed: tuple[SealedSignature, ...] = ()
    tools: bytes = b""
    loads: bool = False  # its tools were found by a search: deferred ones may be called now
    compacts: bool = False  # a compaction trigger
    listed: str = ""  # label of the MCP server whose tools this item lists
    approval: str = ""  # call id, in approval requests and responses
    carried_out: str = ""  # call id, in an MCP call that ran after an approval
    notes: tuple[Note, ...] = ()

    @cached_property
    def speaks(self) -> bool:
        """Whether the item contributes to a message."""
        return bool(self.parts or self.sealed)

    @cached_property
    def tells(self) -> bool:
        """Whether the item carries anything besides messages."""
        more = self.tools, self.loads, self.compacts, self.listed, self.approval, self.carried_out, self.notes
        return any(more)

    @cached_property
    def voice(self) -> MergeKey:
        results = any(isinstance(part, ToolResult) for part in self.parts)
        instructs = self.role == "system" and all(isinstance(part, Text) for part in self.parts)
        return MergeKey(self.role, results, instructs)


def decode_item(item: Item, raw: bytes) -> DecodedItem:
    """Decode an item, whose bytes are `raw`; errors and notes have paths relative to it."""
    known = _READERS.get(item.kind)
    if known is None:
        raise InvalidRequest(f"input items of type {item.kind!r} are not understood", where="")
    role, read = known
    return read(_ItemReader(role, item, raw))


class _ItemReader:
    def __init__(self, role: Role, item: Item, raw: bytes) -> None:
        self.role: Role = role
        self.item = item
        self.raw = raw
        self.notes: list[Note] = []

    def message(self) -> DecodedItem:
        role = _ROLES.get(self.item.role or "user")
        if role is None:
            why = f"{self.item.role!r} is not a role: use user, assistant, system or developer"
            raise InvalidRequest(why, where=".role")
        return self._said(decode_parts(self.item.content, ".content", self.notes), role=role)

    def agent_message(self) -> DecodedItem:
        head = Text(text=f"[message from {self.item.author} to {self.item.recipient}]")
        return self._said([head, *decode_parts(self.item.content, ".content", self.notes)])

    def reasoning(self) -> DecodedItem:
        item = self.item
        text = join_text(item.summary)
        if not text and isinstance(item.content, list):
            text = join_text(item.content)
        sealed = unseal(item.encrypted_content or "")
        if sealed is not None and sealed.target == ON_THOUGHT:
            return self._said([Thought(text=text, signature=sealed.signature)])
        if sealed is None and item.encrypted_content:
            why = "this reasoning is not Gemini's and means nothing to it"
            self.notes.append(Note("dropped", ".encrypted_content", why))
        return self._said([Thought(text=text)] if text else [], sealed=(sealed,) if sealed else ())

    def function_call(self) -> DecodedItem:
        raw = bytes(self.item.arguments)
        args = jsontext.decode(_decode_string, raw, ".arguments").encode() if raw[:1] == b'"' else raw
        return self._call(self._name(), self._args(args))

    def custom_tool_call(self) -> DecodedItem:
        return self._call(self._name(), msgspec.json.encode({"input": self.item.input or ""}))

    def tool_search_call(self) -> DecodedItem:
        args = self._args(bytes(self.item.arguments))
        if not self.item.call_id:  # a server-side search has no call_id
            return self._said([read_call(self.item.id, args)])
        return self._call(SEARCH, args)

    def local_shell_call(self) -> DecodedItem:
        return self._call("local_shell", self._object(self.item.action, ".action", without="type"))

    def shell_call(self) -> DecodedItem:
        return self._call("shell", self._object(self.item.action, ".action"))

    def apply_patch_call(self) -> DecodedItem:
        return self._call("apply_patch", self._object(self.item.operation, ".operation"))

    def output(self) -> DecodedItem:
        """Decode an output: a string, a list of content parts, or any other JSON, which is sent as JSON text."""
        raw = bytes(self.item.output)
        if raw[:1] in (b"", b'"', b"[", b"n") and self.item.kind != "shell_call_output":
            content = jsontext.decode(decode_contents, raw or b"null", ".output")
            return self._result(decode_parts(content, ".output", self.notes))
        return self._result([Text(text=raw.decode())])

    def tool_search_output(self) -> DecodedItem:
        raw = jsontext.validate_text(bytes(self.item.tools), ".tools")
        faces = decode_tool_set(raw, ".tools").client_tools
        if not self.item.call_id:
            return self._said([read_output(self.item.id, faces)], role="model", tools=raw, loads=True)
        words = Text(text=f"Tools found, which can be called now: {', '.join(faces) or 'none'}")
        return self._result([words], tools=raw, loads=True)

    def additional_tools(self) -> DecodedItem:
        return self._said([], tools=jsontext.validate_text(bytes(self.item.tools), ".tools"))

    def computer_call_output(self) -> DecodedItem:
        screen = jsontext.decode(decode_content, bytes(self.item.output) or b"{}", ".output")
        shown = decode_parts([screen], ".output", self.notes)
        return self._said([Text(text="[computer_call_output]"), *shown])

    def compaction(self) -> DecodedItem:
        summary = open_summary(self.item.encrypted_content or "")
        if summary is None:
            why = "this compaction was made by another service and cannot be read here"
            self.notes.append(Note("dropped", ".encrypted_content", why))
            return self._said([Text(text=UNREADABLE)])
        return self._said([Text(text=PREFACE + summary)])

    def compaction_trigger(self) -> DecodedItem:
        return DecodedItem(role=self.role, compacts=True)

    def listed_tools(self) -> DecodedItem:
        return DecodedItem(role=self.role, listed=self.item.server_label or "")

    def item_reference(self) -> DecodedItem:
        raise InvalidRequest(f"there is no stored item with the id {self.item.id!r}", where=".id")

    def approval_request(self) -> DecodedItem:
        identity = bare_id(self.item.id)
        name = mcp_tool_name(self.item.server_label or "", self.item.name or "")
        raw = bytes(self.item.arguments)
        args = jsontext.decode(_decode_string, raw, ".arguments").encode() if raw[:1] == b'"' else raw
        call = ToolCall(id=identity, name=name, args=self._args(args))
        return DecodedItem(role=self.role, parts=(call,), approval=identity)

    def approval_response(self) -> DecodedItem:
        """Decode to a result that tells the model the decision, in place of the result of the call."""
        identity = bare_id(self.item.approval_request_id)
        consents = bool(self.item.approve)
        words = [_APPROVED if consents else _DECLINED, self.item.reason or ""]
        result = ToolResult(
            call_id=identity,
            content=(Text(text=" ".join(filter(None, words))),),
            is_error=not consents,
            approval="yes" if consents else "no",
        )
        return DecodedItem(role=self.role, parts=(result,), approval=identity)

    def served(self) -> DecodedItem:
        parts = read_served(self.item.kind, self.raw)
        if parts is None:
            return self.foreign()
        return DecodedItem(role=self.role, parts=parts, carried_out=bare_id(self.item.approval_request_id))

    def foreign(self) -> DecodedItem:
        """Convert an item of an unsupported server tool to text, without its encrypted data."""
        value = jsontext.decode(_decode_object, self.raw)
        if bytes(value.pop("result", b"null")) not in (b"null", b'""'):
            self.notes.append(Note("dropped", ".result", "a picture the other model made is not sent back"))
        shown = {key: item for key, item in value.items() if key not in _HIDDEN and bytes(item) != b"null"}
        return self._said([Text(text=f"[{self.item.kind}] {msgspec.json.encode(shown).decode()}")])

    def dropped(self) -> DecodedItem:
        self.notes.append(Note("dropped", "", f"{self.item.kind} has no meaning for Gemini"))
        return self._said([])

    def _said(
        self,
        parts: list[Any],
        *,
        role: Role | None = None,
        sealed: tuple[SealedSignature, ...] = (),
        tools: bytes = b"",
        loads: bool = False,
    ) -> DecodedItem:
        return DecodedItem(
            role=role or self.role,
            parts=tuple(parts),
            sealed=sealed,
            tools=tools,
            loads=loads,
            notes=tuple(self.notes),
        )

    def _call(self, name: str, args: bytes) -> DecodedItem:
        return self._said([ToolCall(id=self._call_id(), name=name, args=args)])

    def _result(self, content: list[Text | Media], *, tools: bytes = b"", loads: bool = False) -> DecodedItem:
        kept = tuple(part for part in content if isinstance(part, Media) or part.text)
        failed = self.item.status == "failed"
        result = ToolResult(call_id=self._call_id(), content=kept, is_error=failed)
        return self._said([result], tools=tools, loads=loads)

    def _call_id(self) -> str:
        identity = self.item.call_id or (self.item.id if self.item.kind.startswith("local_shell") else None)
        if not identity:
            raise InvalidRequest(f"an item of type {self.item.kind!r} needs a call_id", where=".call_id")
        return identity

    def _name(self) -> str:
        if not self.item.name:
            raise InvalidRequest("a call needs the name of its tool", where=".name")
        return flat_name(self.item.name, self.item.namespace)

    def _args(self, args: bytes) -> bytes:
        """Return arguments as JSON text of an object; any other value is wrapped in one, with a note."""
        args = jsontext.replace_lone_surrogates(args.strip())
        if args in (b"", b"null"):
            return b"{}"
        try:
            if isinstance(msgspec.json.decode(args), dict):
                return args
        except (msgspec.DecodeError, RecursionError):
            args = msgspec.json.encode(args.decode())
        self.notes.append(Note("mended", ".arguments", "arguments must be a JSON object; wrapped in one"))
        return b'{"input":%b}' % args

    def _object(self, raw: msgspec.Raw, where: str, *, without: str = "") -> bytes:
        value = jsontext.decode(_decode_object, bytes(raw) or b"{}", where)
        kept = {key: item for key, item in value.items() if key != without and bytes(item) != b"null"}
        return msgspec.json.encode(kept)


_decode_string = msgspec.json.Decoder(str).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_HIDDEN = frozenset({"type", "id", "status", "call_id", "encrypted_content", "fingerprint"})


_READERS: dict[str, tuple[Role, Callable[[_ItemReader], DecodedItem]]] = {
    "message": ("user", _ItemReader.message),
    "agent_message": ("user", _ItemReader.agent_message),
    "reasoning": ("model", _ItemReader.reasoning),
    "function_call": ("model", _ItemReader.function_call),
    "custom_tool_call": ("model", _ItemReader.custom_tool_call),
    "tool_search_call": ("model", _ItemReader.tool_search_call),
    "local_shell_call": ("model", _ItemReader.local_shell_call),
    "shell_call": ("model", _ItemReader.shell_call),
    "apply_patch_call": ("model", _ItemReader.apply_patch_call),
    "function_call_output": ("user", _ItemReader.output),
    "custom_tool_call_output": ("user", _ItemReader.output),
    "local_shell_call_output": ("user", _ItemReader.output),
    "shell_call_output": ("user", _ItemReader.output),
    "apply_patch_call_output": ("user", _ItemReader.output),
    "tool_search_output": ("user", _ItemReader.tool_search_output),
    "additional_tools": ("system", _ItemReader.additional_tools),
    "computer_call": ("model", _ItemReader.foreign),
    "computer_call_output": ("user", _ItemReader.computer_call_output),
    "web_search_call": ("model", _ItemReader.served),
    "file_search_call": ("model", _ItemReader.foreign),
    "image_generation_call": ("model", _ItemReader.foreign),
    "code_interpreter_call": ("model", _ItemReader.served),
    "mcp_call": ("model", _ItemReader.served),
    "mcp_approval_request": ("model", _ItemReader.approval_request),
    "mcp_approval_response": ("user", _ItemReader.approval_response),
    "program": ("model", _ItemReader.foreign),
    "program_output": ("user", _ItemReader.foreign),
    "mcp_list_tools": ("system", _ItemReader.listed_tools),
    "configuration_update": ("system", _ItemReader.dropped),
    "compaction": ("user", _ItemReader.compaction),
    "compaction_summary": ("user", _ItemReader.compaction),
    "context_compaction": ("user", _ItemReader.compaction),
    "compaction_trigger": ("user", _ItemReader.compaction_trigger),
    "item_reference": ("user", _ItemReader.item_reference),
}
