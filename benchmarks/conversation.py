"""The requests of an agent's session: the same tools and a growing history in every turn."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from benchmarks.fake_answers import AnswerSpec
from benchmarks.tool_definitions import SCHEMAS, define_tools, write_prose

_encode = msgspec.json.Encoder().encode
_ROUNDS_PER_PROMPT = 6
_CACHED = {"type": "ephemeral"}
_RESULT_BYTES = (120, 250, 400, 700, 900, 1400)
_CODE = (
    "    def load(self, path: Path) -> list[Row]:",
    '        """Rows of the file, oldest first."""',
    "        with path.open(encoding='utf-8') as lines:",
    "            return [Row.parse(line) for line in lines if line.strip()]",
    "\tif err := store.Put(ctx, key, value); err != nil {",
    '\t\treturn fmt.Errorf("put %q: %w", key, err)',
    "export const total = (rows: Row[]): number => rows.reduce((sum, row) => sum + row.price, 0);",
    "",
)


class Shape(msgspec.Struct, frozen=True):
    """The size of a session in its first request."""

    tools_bytes: int
    system_bytes: int
    history_bytes: int


AGENT = Shape(60_000, 15_000, 27_000)  # 25 tools; 105 KB at first, 140 KB fifteen turns later
SMALL = Shape(0, 400, 600)
BIG = Shape(60_000, 15_000, 900_000)


class Conversation:
    """`body(order)` is the next request; `take(blocks)` adds the answer and the result of its call.

    With `unseen_tools` even the tools are ones nobody has sent before.
    """

    def __init__(self, shape: Shape, seed: str, *, stream: bool, unseen_tools: bool = False) -> None:
        self._chance = random.Random(seed)
        self._seed = seed
        self._rounds = 0
        self.has_tools = shape.tools_bytes > 0
        self._messages: list[dict[str, Any]] = []
        self._raw: list[bytes] = []
        self._tail = self._encode_tail(shape, stream, seed if unseen_tools else "")
        self._say(self._prompt(reminder=True))
        left = shape.history_bytes
        while left > 0:
            self.take(self._invent_blocks())
            left -= len(self._raw[-1]) + len(self._raw[-2])

    def _encode_tail(self, shape: Shape, stream: bool, salt: str) -> bytes:
        billing = f"x-anthropic-billing-header: cc_version=2.1.325; cch={self._seed};"
        system = [
            {"type": "text", "text": billing},
            {"type": "text", "text": "You are a coding agent.", "cache_control": _CACHED},
            {"type": "text", "text": write_prose(shape.system_bytes, "system"), "cache_control": _CACHED},
        ]
        tools = define_tools(shape.tools_bytes, f"tools{salt}") if self.has_tools else []
        user = _encode({"device_id": "0" * 64, "account_uuid": "", "session_id": self._seed}).decode()
        rest = {
            "system": system,
            "tools": tools,
            "metadata": {"user_id": user},
            "max_tokens": 32000,
            "thinking": {"type": "enabled", "budget_tokens": 31999},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "stream": stream,
        }
        return b"]," + _encode(rest)[1:]

    def body(self, order: AnswerSpec) -> bytes:
        """Return the next request; its last block has the mark and, as agents send it, the moving cache point."""
        last = self._messages[-1]
        *blocks, end = last["content"]
        field = "content" if end["type"] == "tool_result" else "text"
        marked = {**end, field: f"{end[field]}\n{order.mark()}", "cache_control": _CACHED}
        last["content"] = [*blocks, {**end, field: marked[field]}]  # the mark stays, the cache point moves on
        self._raw[-1] = _encode(last)
        final = _encode({**last, "content": [*blocks, marked]})
        return b'{"model":"claude-sonnet-4-5","messages":[%b%b' % (
            b"".join(raw + b"," for raw in self._raw[:-1]),
            final + self._tail,
        )

    def take(self, blocks: list[dict[str, Any]]) -> None:
        self._say({"role": "assistant", "content": blocks})
        results = [
            {"tool_use_id": block["id"], "type": "tool_result", "content": self._output()}
            for block in blocks
            if block["type"] == "tool_use"
        ]
        self._rounds += 1
        self._say({"role": "user", "content": results})
        if self._rounds % _ROUNDS_PER_PROMPT == 0:
            self._say({"role": "assistant", "content": [{"type": "text", "text": self._words(300)}]})
            self._say(self._prompt(reminder=False))

    def texts(self, block_type: str) -> list[str]:
        """Return the texts of results and user prompts so far, in order."""
        field = "content" if block_type == "tool_result" else "text"
        return [
            str(block[field])
            for message in self._messages
            if message["role"] == "user"
            for block in message["content"]
            if block["type"] == block_type
        ]

    def _say(self, message: dict[str, Any]) -> None:
        self._messages.append(message)
        self._raw.append(_encode(message))

    def _prompt(self, *, reminder: bool) -> dict[str, Any]:
        content = [{"type": "text", "text": f"{self._seed}: {self._words(200)}"}]
        if reminder:
            about = f"<system-reminder>\n{self._words(400)}\n</system-reminder>\n"
            content.insert(0, {"type": "text", "text": about})
        return {"role": "user", "content": content}

    def _invent_blocks(self) -> list[dict[str, Any]]:
        """Return a turn without signatures, as if made by another gateway."""
        name = self._chance.choice(("Read", "Bash", "Grep", "Edit"))
        field, *_ = SCHEMAS[name]["required"]
        call = {
            "type": "tool_use",
            "id": f"toolu_{self._chance.getrandbits(96):024x}",
            "name": name,
            "input": {field: f"/home/dev/shop/{self._seed}/{self._chance.getrandbits(32):08x}"},
        }
        return [{"type": "text", "text": self._words(160)}, call]

    def _output(self) -> str:
        size = self._chance.choice(_RESULT_BYTES)
        lines: list[str] = []
        while size > 0:
            lines.append(f"{len(lines) + 1:>6}\t{self._chance.choice(_CODE)}")
            size -= len(lines[-1])
        return "\n".join(lines)

    def _words(self, size: int) -> str:
        return f"{self._chance.getrandbits(64):016x} {write_prose(size, str(self._chance.random()))}"
