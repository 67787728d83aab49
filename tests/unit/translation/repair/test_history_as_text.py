"""A poisoned history goes on in words."""

from __future__ import annotations

from dragoman.ir import Media, Message, Signature, Text, ToolCall, ToolResult
from dragoman.translation.repair import history_as_text


def test_c11_calls_and_results_are_said_and_nothing_is_lost() -> None:
    picture = Media(mime="image/png", data="aGk=")
    call = ToolCall(id="c", name="look", args=b'{"at":1}', signature=Signature("s", "o"))
    messages = (
        Message(role="user", parts=(Text(text="go"),)),
        Message(role="model", parts=(Text(text="sure"), call)),
        Message(
            role="user",
            parts=(
                ToolResult(call_id="c", name="look", content=(Text(text="a dog"), picture)),
                ToolResult(call_id="d", response=b'{"x":2}', is_error=True),
            ),
        ),
    )
    told = history_as_text(messages)
    assert [message.role for message in told] == ["user", "model", "user"]
    assert told[0].parts == (Text(text="go"),)
    assert told[1].parts == (Text(text="sure"), Text(text='[I called the tool look with {"at":1}]'))
    assert told[2].parts == (
        Text(text="[The tool look answered:]"),
        Text(text="a dog"),
        picture,
        Text(text="[The tool of the call above failed and answered:]"),
        Text(text='{"x":2}'),
    )
