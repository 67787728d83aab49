"""Known problems C1 to C11: whatever came in, what leaves is a history Google accepts."""

from __future__ import annotations

import pytest

from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Message, Part, Signature, Text, Thought, ToolCall, ToolResult
from dragoman.notes import Note
from dragoman.translation.repair import repair
from dragoman.translation.repair.history import LEADING_USER, LOST_RESULT, TRAILING_USER

SIGNATURE = Signature("c2ln", "gemini-g3")
PIXEL = Media(mime="image/png", data="AAAA")


def text(words: str) -> Text:
    return Text(text=words)


def user(*parts: Part | str) -> Message:
    return Message(role="user", parts=_parts(parts))


def model(*parts: Part | str) -> Message:
    return Message(role="model", parts=_parts(parts))


def system(*parts: Part | str) -> Message:
    return Message(role="system", parts=_parts(parts))


def _parts(parts: tuple[Part | str, ...]) -> tuple[Part, ...]:
    return tuple(text(part) if isinstance(part, str) else part for part in parts)


def call(identity: str, name: str = "f", signature: Signature | None = None) -> ToolCall:
    return ToolCall(id=identity, name=name, signature=signature)


def result(identity: str, words: str = "ok", name: str = "f", *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id=identity, name=name, content=(text(words),), is_error=is_error)


def nameless(identity: str, words: str = "ok") -> ToolResult:
    return result(identity, words, name="")


def lost(identity: str, name: str = "f") -> ToolResult:
    return result(identity, LOST_RESULT, name, is_error=True)


def repaired(*messages: Message, ends_with_user: bool = True) -> tuple[Message, ...]:
    return repair(messages, ends_with_user=ends_with_user)[0]


def notes(*messages: Message, ends_with_user: bool = True) -> tuple[Note, ...]:
    return repair(messages, ends_with_user=ends_with_user)[1]


def places(*messages: Message) -> list[tuple[str, str]]:
    return [(note.kind, note.where) for note in notes(*messages)]


@pytest.mark.parametrize(
    "messages",
    [
        (user("q"),),
        (user("q"), model("a"), user("q2")),
        (user("q"), model("a", call("1")), user(result("1")), model("b"), user("q2")),
        (user("q"), model(call("1"), call("2")), user(result("1"), result("2"))),
        (user("q"), model(call("1")), user(result("1")), user("and this")),
        (user("q"), model(call("1")), user(result("1")), system("remark")),
        (system("remark"), user("q", PIXEL)),
        (user("q"), system("remark"), model("a"), user("q2"), system("remark")),
        (user("q"), model(Thought(text="t", signature=SIGNATURE), "a"), user("q2")),
        (user("q"), model("a", Text(text="", signature=SIGNATURE)), user("q2")),
        (
            user("q"),
            model(call("1", signature=SIGNATURE)),
            user(result("1")),
            model(call("1")),
            user(result("1")),
        ),
    ],
)
def test_what_is_right_comes_back_unchanged_without_notes(messages: tuple[Message, ...]) -> None:
    assert repair(messages, ends_with_user=True) == (messages, ())


def test_c1_results_of_a_step_are_grouped_in_call_order() -> None:
    got = repaired(
        user("q"),
        model(call("1"), call("2", "g"), call("3")),
        user(nameless("3", "c")),
        user(nameless("1", "a"), nameless("2", "b")),
    )
    assert got[2:] == (user(result("1", "a"), result("2", "b", "g"), result("3", "c")),)


def test_c1_a_missing_result_is_an_error_and_noted() -> None:
    messages = (user("q"), model(call("1"), call("2")), user(nameless("2")))
    assert repaired(*messages)[2:] == (user(lost("1"), result("2")),)
    assert places(*messages) == [("repaired", "messages[1]")]


def test_c1_calls_at_the_end_get_their_errors_too() -> None:
    assert repaired(user("q"), model(call("1")), ends_with_user=False) == (
        user("q"),
        model(call("1")),
        user(lost("1")),
    )


def test_c1_a_second_result_goes_and_is_noted() -> None:
    messages = (user("q"), model(call("1")), user(nameless("1", "a")), user(nameless("1", "b")))
    assert repaired(*messages)[2:] == (user(result("1", "a")),)
    assert ("dropped", "messages[2]") in places(*messages)


def test_c1_calls_split_over_messages_are_one_step() -> None:
    got = repaired(
        user("q"),
        model(call("1", signature=SIGNATURE)),
        model(call("2")),
        user(nameless("1")),
        user(nameless("2")),
    )
    assert got[1:] == (model(call("1", signature=SIGNATURE), call("2")), user(result("1"), result("2")))


def test_c1_a_late_result_still_finds_its_call() -> None:
    got = repaired(user("q"), model(call("1")), user("wait"), model("hm"), user(nameless("1")))
    assert got == (
        user("q"),
        model(call("1")),
        user(result("1")),
        user("wait"),
        model("hm"),
        user(TRAILING_USER),
    )


def test_c2_a_history_that_starts_with_a_call_gets_a_user() -> None:
    messages = (model(call("1")), user(nameless("1")))
    assert repaired(*messages) == (user(LEADING_USER), model(call("1")), user(result("1")))
    assert places(*messages) == [("repaired", "messages[0]")]


def test_c2_an_orphan_becomes_text() -> None:
    messages = (user("q"), model("a"), user(nameless("9", "it rains"), "so?"))
    got = repaired(*messages)
    assert got[2] == user("Result of an earlier tool call:", "it rains", "so?")
    assert places(*messages) == [("repaired", "messages[2]")]


def test_c2_a_result_before_its_call_is_an_orphan() -> None:
    assert repaired(user(nameless("1")), model(call("1")))[0] == user("Result of an earlier tool call:", "ok")


def test_c2_a_call_right_after_a_remark_follows_a_user_turn() -> None:
    got = repaired(system("s"), model(call("1")), user(nameless("1")))
    assert got == (system("s"), model(call("1")), user(result("1")))


@pytest.mark.parametrize("tail", [model("a"), model(Text(text="", signature=SIGNATURE))])
def test_c3_the_last_word_is_the_users_where_the_model_wants_it(tail: Message) -> None:
    assert repaired(user("q"), tail) == (user("q"), tail, user(TRAILING_USER))
    assert places(user("q"), tail) == [("repaired", "messages[1]")]
    assert repaired(user("q"), tail, ends_with_user=False) == (user("q"), tail)


def test_c3_a_remark_at_the_end_is_a_user_turn() -> None:
    assert repaired(user("q"), model("a"), system("s"))[-1] == system("s")


@pytest.mark.parametrize(
    "empty", [user(), user(""), model(), model(""), model(Thought(text="t")), system("")]
)
def test_c4_empty_messages_vanish_with_a_note(empty: Message) -> None:
    messages = (user("q"), model("a"), empty, user("r"))
    assert repaired(*messages) == (user("q"), model("a"), user("r"))
    assert places(*messages) == [("dropped", "messages[2]")]


def test_c4_empty_parts_vanish_and_no_signature_moves() -> None:
    signed = Text(text="", signature=SIGNATURE)
    got = repaired(user("", "q", ""), model(Thought(text="t"), "", "a", signed, ""), user("r"))
    assert got == (user("q"), model("a", signed), user("r"))


def test_c4_an_empty_result_is_still_a_result() -> None:
    empty = ToolResult(call_id="1", name="f")
    assert repaired(user("q"), model(call("1")), user(empty)) == (user("q"), model(call("1")), user(empty))


def test_c4_nothing_at_all_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        repair((user(""), model("")), ends_with_user=True)
    assert caught.value.where == "messages"


def test_c5_the_error_flag_and_the_media_of_a_result_are_kept() -> None:
    given = ToolResult(call_id="1", content=(text("a"), PIXEL), is_error=True)
    got = repaired(user("q"), model(call("1", "g")), user(given))
    assert got[2] == user(ToolResult(call_id="1", name="g", content=(text("a"), PIXEL), is_error=True))


def test_c6_the_name_comes_from_the_call() -> None:
    got = repaired(user("q"), model(call("1", "right")), user(result("1", "a", "wrong")))
    assert got[2] == user(result("1", "a", "right"))


def test_c7_a_recycled_id_belongs_to_the_nearest_call_before_it() -> None:
    got = repaired(
        user("q"),
        model(call("0", "f")),
        user(nameless("0", "a")),
        model(call("0", "g")),
        user(nameless("0", "b")),
    )
    assert got[2] == user(result("0", "a", "f"))
    assert got[4] == user(result("0", "b", "g"))


def test_c7_two_calls_with_one_id_are_answered_in_order_and_told_apart() -> None:
    messages = (
        user("q"),
        model(call("0", "f"), call("0", "g")),
        user(nameless("0", "a"), nameless("0", "b")),
    )
    got = repaired(*messages)
    assert got[1:] == (
        model(call("0", "f"), call("0-2", "g")),
        user(result("0", "a", "f"), result("0-2", "b", "g")),
    )
    assert places(*messages) == [("renamed", "messages[1]")]


def test_c7_a_new_name_is_never_one_that_is_taken() -> None:
    got = repaired(user("q"), model(call("0"), call("0-2"), call("0"), call("0-2")))
    ids = [part.id for part in got[1].parts if isinstance(part, ToolCall)]
    assert len(set(ids)) == 4
    assert ids[:2] == ["0", "0-2"]


def test_c9_results_come_before_what_the_user_says() -> None:
    got = repaired(user("q"), model(call("1")), user("look:", nameless("1"), "see?"))
    assert got[2:] == (user(result("1")), user("look:", "see?"))


def test_f1_a_remark_between_call_and_result_moves_behind_the_result() -> None:
    got = repaired(user("q"), model(call("1")), system("s"), user(nameless("1")))
    assert got == (user("q"), model(call("1")), user(result("1")), system("s"))


def test_c10_a_call_that_is_not_the_models_is_given_to_it() -> None:
    messages = (user("q", call("1"), "r"), user(nameless("1")))
    assert repaired(*messages) == (user("q"), model(call("1")), user(result("1")), user("r"))
    assert ("repaired", "messages[0]") in places(*messages)


def test_c10_a_result_that_is_not_the_users_is_given_to_it() -> None:
    got = repaired(user("q"), model("a", call("1"), nameless("1"), "b"), user("r"))
    assert got == (user("q"), model("a", call("1")), user(result("1")), model("b"), user("r"))


def test_c10_an_orphan_in_the_models_mouth_is_the_users() -> None:
    got = repaired(user("q"), model("a", nameless("9", "x")))
    assert got == (user("q"), model("a"), user("Result of an earlier tool call:", "x"))


def test_thoughts_and_signatures_are_only_the_models() -> None:
    got = repaired(user("q", Thought(text="t", signature=SIGNATURE), Text(text="r", signature=SIGNATURE)))
    assert got == (user("q", "r"),)


def test_media_of_a_remark_is_shown_by_the_user() -> None:
    assert repaired(system("look", PIXEL), user("q")) == (system("look"), user(PIXEL, "q"))


def test_neighbours_of_one_role_are_one_turn() -> None:
    got = repaired(user("a"), user("b"), model("c"), model("d"), system("e"), system("f"), user("g"))
    assert got == (user("a", "b"), model("c", "d"), system("e", "f"), user("g"))


def test_notes_name_the_message_the_client_sent() -> None:
    messages = (
        user("a"),
        user("b"),
        user(""),
        model("c"),
        user("d"),
        model(call("1")),
        user("e"),
        user(nameless("9")),
    )
    assert places(*messages) == [
        ("dropped", "messages[2]"),
        ("repaired", "messages[7]"),
        ("repaired", "messages[5]"),
    ]


def test_many_twins_cost_no_more_than_their_number() -> None:
    ids = ["0"] * 5000
    got = repaired(user("q"), model(*map(call, ids)), user(*map(nameless, ids)))
    assert len({part.call_id for part in got[2].parts if isinstance(part, ToolResult)}) == 5000
