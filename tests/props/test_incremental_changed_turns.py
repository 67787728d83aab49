"""A history that comes again, cut, forked, with other tools and settings: it is sent as if for the first time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.errors import InvalidRequest
from dragoman.incremental import lru
from dragoman.incremental.lru import LruCache
from dragoman.ir import (
    Message,
    OutputFormat,
    Part,
    Request,
    Role,
    Sampling,
    ServerTool,
    Signature,
    Text,
    Thinking,
    Thought,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from dragoman.translation.repair import history_as_text, repair
from dragoman.translation.token_estimate import estimate_tokens
from tests.props.hypothesis_settings import examples

_WORDS = st.sampled_from(["", "a", "b", "ä\n"])
_IDS = st.sampled_from(["1", "2"])
_NAMES = st.sampled_from(["find", "a.b"])
_SIGNED = st.sampled_from([None, None, Signature("c2ln", "gemini-g3"), Signature("c2ln", "vertex-g3")])
_SAID: dict[Role, st.SearchStrategy[Part]] = {
    "user": st.builds(ToolResult, call_id=_IDS, content=st.just((Text(text="done"),)))
    | st.builds(Text, text=_WORDS),
    "model": st.builds(ToolCall, id=_IDS, name=_NAMES, signature=_SIGNED)
    | st.builds(Text, text=_WORDS, signature=_SIGNED)
    | st.builds(Thought, text=_WORDS, signature=_SIGNED),
    "system": st.builds(Text, text=_WORDS),
}
_ROLES: st.SearchStrategy[tuple[Role, ...]] = st.sampled_from(
    [
        ("user", "model", "user", "system", "model", "user", "system", "user"),
        ("user", "system", "model", "user", "model", "user", "model", "user"),
        ("system", "user", "model", "system", "user", "model", "user", "model"),
        ("model", "model", "user", "user", "system", "system", "model", "user"),
    ]
)


def _message(role: Role) -> st.SearchStrategy[Message]:
    parts = st.lists(_SAID[role], min_size=1, max_size=2).map(tuple)
    return st.builds(Message, role=st.just(role), parts=parts)


_HISTORIES = _ROLES.flatmap(lambda roles: st.tuples(*map(_message, roles)))
_TOOLS = (
    Tool(name="find", schema=b'{"type":"object"}', where="tools[0]"),
    Tool(name="a.b", description="ä", where="tools[1]"),
)
_SURROUNDINGS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "system": st.sampled_from([(Text(text="Be brief."),), (Text(text="Be brief"), Text(text="."))]),
        "tools": st.sampled_from([_TOOLS, _TOOLS[:1], (*_TOOLS, _TOOLS[0])]),
        "server_tools": st.sampled_from([(ServerTool(kind="web_search", max_uses=3, where="tools[2]"),)]),
        "tool_choice": st.sampled_from([ToolChoice(mode="any"), ToolChoice(parallel=False)]),
        "thinking": st.sampled_from([Thinking(mode="off"), Thinking(mode="on", budget_tokens=9, show=True)]),
        "sampling": st.sampled_from([Sampling(max_tokens=10**6), Sampling(temperature=3, stop=("x",))]),
        "output": st.sampled_from([OutputFormat(), OutputFormat(schema=b'{"type":"object","title":"t"}')]),
        "native": st.sampled_from([(("tools", b'{"x":1}'),), (("generationConfig.thinkingConfig", b"{}"),)]),
    },
)
_TARGETS = st.builds(
    Target,
    model=st.sampled_from(["gemini-3.8-flash", "gemini-2.5-flash"]),
    backend=st.sampled_from(["gemini", "vertex"]),
    proto_schemas=st.booleans(),
    trust_signatures=st.booleans(),
    own_thinking=st.booleans(),
    history_as_text=st.sampled_from([False, False, True]),
    omit_fields=st.sampled_from(
        [(), (), (), ("tool_config", "generation_config.thinking_config"), ("contents",)]
    ),
)
#: How many of the messages come, and which others behind them.
_TURNS = st.tuples(st.integers(0, 8), st.lists(st.integers(0, 7), max_size=2))


def _send(request: Request, target: Target) -> tuple[Any, ...]:
    """As `Exchange.encode` does it."""
    try:
        messages, notes = repair(request.messages, ends_with_user=gemini.ends_with_user(target))
        messages = history_as_text(messages) if target.history_as_text else messages
        ready = msgspec.structs.replace(request, messages=messages)
        sent = gemini.encode_request(ready, target, lambda: "id")
        count = gemini.encode_count(ready, target)
    except InvalidRequest as error:
        return (str(error),)
    return sent.body, count, notes, sent.notes, type(sent.reader()), estimate_tokens(request)


def _copy(request: Request) -> Request:
    """Without what was derived from the messages."""
    messages = tuple(Message(role=message.role, parts=message.parts) for message in request.messages)
    return msgspec.structs.replace(request, messages=messages)


@examples(300)
@given(
    history=_HISTORIES,
    turns=st.lists(_TURNS, min_size=1, max_size=6),
    ways=st.lists(st.tuples(_SURROUNDINGS, _TARGETS), min_size=1, max_size=2),
)
def test_what_changes_between_turns_is_sent_as_it_is_now(
    history: tuple[Message, ...],
    turns: list[tuple[int, list[int]]],
    ways: list[tuple[dict[str, Any], Target]],
) -> None:
    asked = [
        (Request(model="m", messages=messages, **surroundings), target)
        for surroundings, target in (*ways, ways[0])
        for known, others in turns
        for messages in (history, (*history[:known], *map(history.__getitem__, others)))
    ]
    warm = [_send(*one) for one in asked]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LruCache, "find", lambda *_: None)
        patch.setattr(lru._SharedBudget, "max_bytes", 0)
        assert warm == [_send(_copy(request), target) for request, target in asked]
