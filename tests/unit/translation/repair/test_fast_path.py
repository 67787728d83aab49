"""Which histories need no repair, and that these keep their very messages."""

from __future__ import annotations

import pytest

from dragoman.ir import Media, Message, Part, Signature, Text, Thought, ToolCall, ToolResult
from dragoman.translation.repair import fast_path, history
from dragoman.translation.repair.fast_path import check_history

SIGNATURE = Signature("s", "gemini-g3")
ASK = Message(role="user", parts=(Text(text="q"), Media(mime="image/png", data="x")))
SAY = Message(role="model", parts=(Thought(text="hm"), Text(text="a")))
PLAIN = Message(role="model", parts=(Text(text="a"),))
CALL = Message(role="model", parts=(ToolCall(id="1", name="f"), ToolCall(id="2", name="g")))
RESULT = Message(role="user", parts=(ToolResult(call_id="1"), ToolResult(call_id="2")))
SWAPPED = Message(role="user", parts=(ToolResult(call_id="2"), ToolResult(call_id="1")))
REMARK = Message(role="system", parts=(Text(text="r"),))
NAMED = Message(role="user", parts=(ToolResult(call_id="1", name="f"), ToolResult(call_id="2", name="g")))


def _model(*parts: Part) -> Message:
    return Message(role="model", parts=parts)


def _user(*parts: Part) -> Message:
    return Message(role="user", parts=parts)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((ASK,), (ASK,)),
        ((ASK, SAY, ASK), (ASK, SAY, ASK)),
        ((ASK, CALL, RESULT), (ASK, CALL, NAMED)),
        ((ASK, CALL, SWAPPED, CALL, RESULT, SAY, ASK), (ASK, CALL, NAMED, CALL, NAMED, SAY, ASK)),
        (
            (REMARK, ASK, REMARK, CALL, RESULT, REMARK, SAY, REMARK),
            (REMARK, ASK, REMARK, CALL, NAMED, REMARK, SAY, REMARK),
        ),
        ((REMARK, ASK, REMARK, CALL, RESULT, REMARK), (REMARK, ASK, REMARK, CALL, NAMED, REMARK)),
        ((ASK, CALL, RESULT, ASK), (ASK, CALL, NAMED, ASK)),
        ((ASK, _model(Text(text="", signature=SIGNATURE)), ASK), ...),
        ((ASK, _model(Thought(text="", signature=SIGNATURE)), ASK), ...),
    ],
)
def test_sound_histories(messages: tuple[Message, ...], expected: object) -> None:
    assert check_history(messages, ends_with_user=False) == (messages if expected is ... else expected)


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param((), id="nothing"),
        pytest.param((SAY,), id="the model first"),
        pytest.param((ASK, CALL), id="calls without results"),
        pytest.param((ASK, CALL, ASK), id="text for results"),
        pytest.param((ASK, CALL, REMARK, RESULT), id="a remark between"),
        pytest.param((ASK, RESULT), id="results without calls"),
        pytest.param((ASK, CALL, _user(ToolResult(call_id="1"))), id="one result missing"),
        pytest.param(
            (ASK, CALL, _user(ToolResult(call_id="1"), ToolResult(call_id="3"))), id="a foreign result"
        ),
        pytest.param((ASK, CALL, _user(ToolResult(call_id="1"), ToolResult(call_id="1"))), id="one twice"),
        pytest.param((ASK, CALL, _user(*RESULT.parts, ToolResult(call_id="1"))), id="all, and one again"),
        pytest.param((ASK, CALL, _user(*RESULT.parts, Text(text="x"))), id="text beside results"),
        pytest.param((ASK, _model(*CALL.parts, ToolCall(id="1", name="f"))), id="one id twice"),
        pytest.param((_user(Text(text="")),), id="empty text"),
        pytest.param((_user(),), id="no parts"),
        pytest.param((_user(Text(text="x", signature=SIGNATURE)),), id="a signed user"),
        pytest.param((_user(ToolCall(id="1", name="f")),), id="a calling user"),
        pytest.param((ASK, _model(Text(text="")), ASK), id="an empty answer"),
        pytest.param((ASK, _model(Thought(text="x")), ASK), id="only thoughts"),
        pytest.param((ASK, _model(Media(mime="m")), ASK), id="a drawing model"),
        pytest.param((ASK, Message(role="system", parts=(Media(mime="m"),))), id="a drawing program"),
    ],
)
def test_the_rest_is_looked_at_closely(messages: tuple[Message, ...]) -> None:
    assert check_history(messages, ends_with_user=False) is None


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param((ASK, ASK), id="the user twice"),
        pytest.param((ASK, ASK, ASK, PLAIN, ASK, ASK), id="the user again and again"),
        pytest.param((ASK, PLAIN, PLAIN), id="the model twice"),
        pytest.param((ASK, PLAIN, CALL, RESULT, ASK, ASK, REMARK, PLAIN), id="the model, then its calls"),
        pytest.param((REMARK, REMARK, ASK, REMARK, REMARK), id="two remarks"),
        pytest.param((ASK, CALL, RESULT, ASK, ASK), id="results stay apart"),
    ],
)
def test_neighbours_are_joined_as_the_close_look_would_do_it(
    messages: tuple[Message, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    quickly = check_history(messages, ends_with_user=False)
    monkeypatch.setattr(history, "check_history", lambda *_, **__: None)
    assert (quickly, ()) == history.repair(messages, ends_with_user=False)


def test_joined_messages_keep_their_identity_from_turn_to_turn() -> None:
    said = tuple(
        Message(role=one.role, parts=one.parts) for one in (ASK, ASK, CALL, RESULT, ASK, ASK, SAY, ASK)
    )
    turns = [check_history(said[:end], ends_with_user=True) for end in (1, 2, 4, 5, 6, 8, 5, 8)]
    lengths = [len(turn or ()) for turn in turns]
    assert lengths == [1, 1, 3, 4, 4, 6, 4, 6]
    whole = turns[5]
    assert whole is not None
    for turn, same in zip(turns, (0, 1, 3, 3, 4, 6, 3, 6), strict=True):
        assert turn is not None
        assert all(one is other for one, other in zip(turn[:same], whole, strict=False))


def test_the_end_depends_on_the_model() -> None:
    assert check_history((ASK, SAY), ends_with_user=False) == (ASK, SAY)
    assert check_history((ASK, SAY), ends_with_user=True) is None


def test_messages_keep_their_identity_from_turn_to_turn() -> None:
    first = check_history((ASK, CALL, SWAPPED), ends_with_user=True)
    second = check_history((ASK, CALL, SWAPPED, SAY, ASK), ends_with_user=True)
    assert first is not None
    assert second is not None
    assert all(one is other for one, other in zip(first, second, strict=False))


def test_a_history_that_goes_another_way_is_judged_from_there() -> None:
    history = (ASK, CALL, SWAPPED, SAY, ASK)
    ways = [history, (ASK, CALL, RESULT, SAY, ASK), history[:3], (ASK, SAY, SAY), (ASK, SAY, ASK), history]
    copied = [tuple(Message(role=one.role, parts=one.parts) for one in way) for way in ways]
    assert [check_history(way, ends_with_user=True) for way in ways] == [
        check_history(way, ends_with_user=True) for way in copied
    ]


def test_of_a_next_turn_only_what_is_new_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[Message] = []
    step = fast_path._step

    def counted(before: fast_path.HistoryStep, message: Message) -> fast_path.HistoryStep | None:
        judged.append(message)
        return step(before, message)

    monkeypatch.setattr(fast_path, "_step", counted)
    first = Message(role="user", parts=(Text(text="q"),))
    check_history((first, CALL, RESULT), ends_with_user=True)
    check_history((first, CALL, RESULT, SAY, ASK), ends_with_user=True)
    assert judged == [first, CALL, RESULT, SAY, ASK]
