"""What a client was not shown finds its place again, and stays away where it does not belong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.ir import Media, Message, Native, Part, Role, Signature, Text, Thought, ToolCall, ToolResult
from dragoman.translation.repair import (
    HIDDEN_KEY_PREFIX,
    HiddenRounds,
    hidden_key,
    hidden_places,
    known_tools,
    repair,
    restore_hidden_rounds,
)
from dragoman.translation.repair import hidden_rounds as module

SIGNED = Signature("c2ln", "gemini-g3")
ASKED = Message(role="user", parts=(Text(text="q"),))


def said(role: Role, *parts: Part) -> Message:
    return Message(role=role, parts=parts)


def call(identity: str, signature: Signature | None = None) -> ToolCall:
    return ToolCall(id=identity, name=f"tool_{identity}", args=b'{"a":1}', signature=signature)


def result(identity: str, words: str = "found") -> ToolResult:
    return ToolResult(call_id=identity, name=f"tool_{identity}", content=(Text(text=words),))


ROUND = (said("model", Text(text="first"), call("o1", SIGNED)), said("user", result("o1")))
TEXT_ANSWER = HiddenRounds(rounds=ROUND, last=said("model", Text(text="done", signature=SIGNED)))
MIXED = HiddenRounds(
    rounds=ROUND,
    last=said("model", Text(text="next"), call("o2", SIGNED), call("c1"), call("o3"), call("c2")),
    results=(result("o2"), result("o3")),
)


def woven(record: HiddenRounds, *messages: Message) -> tuple[Message, ...]:
    places = hidden_places(messages)
    return restore_hidden_rounds(messages, places, dict.fromkeys(places, record.encode()))


class TestKeys:
    def test_an_answer_with_calls_is_known_by_the_first(self) -> None:
        messages = (ASKED, said("model", Text(text="x"), call("c1"), call("c2")), said("user", result("c1")))
        assert hidden_places(messages) == {f"{HIDDEN_KEY_PREFIX}c1": (1, 2)}
        assert hidden_key(ASKED, "whatever", "c1") == f"{HIDDEN_KEY_PREFIX}c1"

    def test_an_answer_in_words_is_known_by_them_and_by_the_question(self) -> None:
        (key,) = hidden_places(
            (ASKED, said("model", Thought(text="hm"), Text(text="well, "), Text(text="done")))
        )
        assert key == hidden_key(ASKED, "well, done")
        assert key != hidden_key(said("user", Text(text="another")), "well, done")
        assert key != hidden_key(None, "well, done")

    def test_neighbours_are_one_answer(self) -> None:
        parted = (ASKED, said("model", Text(text="well, ")), said("model", Text(text="done")))
        assert hidden_places(parted) == {hidden_key(ASKED, "well, done"): (1, 3)}

    def test_nothing_is_known_by_nothing(self) -> None:
        assert hidden_places((ASKED, said("model", Text(text=" ")), said("system", Text(text="s")))) == {}
        assert hidden_places(()) == {}

    @given(st.text(), st.lists(st.sampled_from([" ", "\n", "\t", "\r\n"])))
    def test_white_space_does_not_count(self, text: str, blanks: list[str]) -> None:
        spread = "".join(blanks).join(text)
        assert hidden_key(ASKED, spread) == hidden_key(ASKED, text)

    def test_a_key_is_made_once_for_a_question(self) -> None:
        answer = said("model", Text(text="done"))
        (first,) = hidden_places((ASKED, answer))
        other = said("user", Text(text="another"))
        (second,) = hidden_places((other, answer))
        assert first != second
        assert [*hidden_places((ASKED, answer))] == [first]
        assert [*hidden_places((ASKED, answer, said("model", Text(text="more"))))] != [first]


class TestWeaving:
    def test_rounds_before_words(self) -> None:
        again = said("user", Text(text="again"))
        assert woven(TEXT_ANSWER, ASKED, said("model", Text(text="first\n\ndone")), again) == (
            ASKED,
            *ROUND,
            TEXT_ANSWER.last,
            again,
        )

    def test_a_mixed_step_is_whole_and_in_order(self) -> None:
        shown = said("model", Text(text="first\n\nnext"), call("c1"), call("c2"))
        answered = said("user", result("c2"), result("c1"))
        messages = woven(MIXED, ASKED, shown, answered)
        assert messages[:4] == (ASKED, *ROUND, MIXED.last)
        repaired, notes = repair(messages, ends_with_user=True)
        assert notes == ()
        assert [part.call_id for part in repaired[4].parts if isinstance(part, ToolResult)] == [
            "o2",
            "c1",
            "o3",
            "c2",
        ]

    def test_results_beside_words_stay_beside_them(self) -> None:
        shown = said("model", call("c1"), call("c2"))
        answered = said("user", result("c1"), result("c2"), Text(text="and?"))
        *_, last = woven(MIXED, ASKED, shown, answered)
        assert last.parts == (*MIXED.results, *answered.parts)

    def test_the_same_history_weaves_the_same_messages(self) -> None:
        """What is encoded once is encoded for good."""
        messages = (ASKED, said("model", call("c1"), call("c2")), said("user", result("c1"), result("c2")))
        once, twice = woven(MIXED, *messages), woven(MIXED, *messages)
        assert all(one is other for one, other in zip(once, twice, strict=True))
        other = HiddenRounds(last=MIXED.last, results=MIXED.results)
        assert woven(other, *messages)[-1] is not once[-1]

    @pytest.mark.parametrize("following", [(), (said("user", Text(text="stop")),)])
    def test_a_client_that_never_answered(self, following: tuple[Message, ...]) -> None:
        messages = woven(MIXED, ASKED, said("model", call("c1"), call("c2")), *following)
        assert messages == (ASKED, *ROUND, MIXED.last, said("user", *MIXED.results), *following)
        repaired, _ = repair(messages, ends_with_user=True)
        results = [part for part in repaired[4].parts if isinstance(part, ToolResult)]
        assert [(one.call_id, one.is_error) for one in results] == [
            ("o2", False),
            ("c1", True),
            ("o3", False),
            ("c2", True),
        ]

    def test_calls_the_client_has_dropped_are_dropped(self) -> None:
        messages = woven(MIXED, ASKED, said("model", call("c1")), said("user", result("c1")))
        assert [part.id for part in messages[3].parts if isinstance(part, ToolCall)] == ["o2", "c1", "o3"]
        assert messages[3].parts[0] == Text(text="next")

    def test_a_turn_with_calls_we_never_saw_is_not_ours(self) -> None:
        messages = (ASKED, said("model", call("c1"), call("c9")), said("user", result("c1"), result("c9")))
        assert woven(MIXED, *messages) == messages

    @pytest.mark.parametrize("word", ["", "{}", "[", '{"last":{"role":"model","parts":[{"type":"odd"}]}}'])
    def test_a_damaged_record_is_a_lost_one(self, word: str) -> None:
        messages = (ASKED, said("model", Text(text="done")))
        assert (
            restore_hidden_rounds(messages, hidden_places(messages), {hidden_key(ASKED, "done"): word})
            == messages
        )

    def test_nothing_found_changes_nothing(self) -> None:
        messages = (ASKED, said("model", Text(text="done")))
        assert restore_hidden_rounds(messages, hidden_places(messages), {}) is messages
        assert restore_hidden_rounds(messages, {}, {"hidden-x": TEXT_ANSWER.encode()}) is messages


class TestRecords:
    def test_everything_comes_back(self) -> None:
        parts = (
            Thought(text="hm", signature=SIGNED),
            Native(json=b'{"executableCode":{}}'),
            call("o1", SIGNED),
            Text(text="\ud83d".encode("utf-8", "replace").decode(), signature=SIGNED),
        )
        picture = ToolResult(call_id="o1", content=(Media(mime="image/png", data="AA=="),), response=b"{}")
        record = HiddenRounds(last=said("model", *parts), rounds=(said("user", picture),), results=(picture,))
        assert module._decode(record.encode()) == record

    @pytest.mark.parametrize(
        ("files", "words", "expected"),
        [
            (10, 10, ("file", "words")),
            (500, 10, (module._FILE_LEFT_OUT, "words")),
            (500, 500, (module._LEFT_OUT,)),
        ],
    )
    def test_what_is_too_long_is_kept_without(
        self, monkeypatch: pytest.MonkeyPatch, files: int, words: int, expected: tuple[str, ...]
    ) -> None:
        monkeypatch.setattr(module, "MAX_RECORD_BYTES", 700)
        content = (Media(mime="image/png", data="A" * files), Text(text="w" * words))
        long = ToolResult(call_id="o1", content=content)
        record = HiddenRounds(
            last=said("model", Text(text="x")), rounds=(said("user", long),), results=(long,)
        )
        kept = module._decode(record.encode())
        assert kept.rounds[0].parts == kept.results
        shown = tuple(part.text if isinstance(part, Text) else "file" for part in kept.results[0].content)
        assert tuple("words" if set(text) == {"w"} else text for text in shown) == expected


class TestKnownTools:
    """What was found or called stays declared, in the order of the conversation."""

    CALLED = (ASKED, said("model", call("c1")), said("user", result("c1")), said("model", Text(text="well")))

    def test_calls_and_what_was_revealed_before_them(self) -> None:
        places = hidden_places(self.CALLED)
        first, second = places
        found = {
            second: HiddenRounds(last=ROUND[0], revealed=("later",)).encode(),
            first: HiddenRounds(last=ROUND[0], revealed=("b", "tool_c1", "a")).encode(),
            "hidden-of-another": HiddenRounds(last=ROUND[0], revealed=("never",)).encode(),
        }
        assert list(known_tools(self.CALLED, places, found)) == ["b", "tool_c1", "a", "tool_c1", "later"]

    @pytest.mark.parametrize("word", [None, "{", "[]"])
    def test_what_is_lost_leaves_the_calls(self, word: str | None) -> None:
        places = hidden_places(self.CALLED)
        found = {} if word is None else dict.fromkeys(places, word)
        assert list(known_tools(self.CALLED, places, found)) == ["tool_c1"]

    def test_a_record_that_is_made_lighter_still_names_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MAX_RECORD_BYTES", 10)
        record = HiddenRounds(rounds=ROUND, last=ROUND[0], revealed=("a",)).encode()
        assert list(known_tools((ASKED,), {"k": (0, 1)}, {"k": record})) == ["a"]
