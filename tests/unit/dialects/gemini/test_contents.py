"""Messages to `contents`: parts, results, media, remarks, ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.gemini.wire import client_id, upstream_id
from dragoman.ir import Media, Message, Part, Text, Thought, ToolCall, ToolResult
from tests.unit.dialects.gemini.builders import (
    NEW,
    OLD,
    OURS,
    call,
    contents_of,
    model,
    notes_of,
    remark,
    result,
    user,
)

PNG = Media(mime="image/png", data="iVBORw0K")
HEIC = Media(mime="image/heic", data="R0lGOD")
PDF = Media(mime="application/pdf", data="JVBERi0=")
PNG_WIRE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0K"}}
HEIC_WIRE = {"inlineData": {"mimeType": "image/heic", "data": "R0lGOD"}}
PDF_WIRE = {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}}


@pytest.mark.parametrize(
    ("part", "wire"),
    [
        (Text(text="hi"), [{"text": "hi"}]),
        (Text(text="hi", signature=OURS), [{"text": "hi", "thoughtSignature": OURS.data}]),
        (Text(text="", signature=OURS), [{"text": "", "thoughtSignature": OURS.data}]),
        (Text(text="\\n \\u0041 'x' \"y\""), [{"text": "\\n \\u0041 'x' \"y\""}]),
        (
            Thought(text="hm", signature=OURS),
            [{"text": "hm", "thought": True, "thoughtSignature": OURS.data}],
        ),
        (PNG, [PNG_WIRE]),
        (
            Media(mime="image/png", uri="gs://b/x"),
            [{"fileData": {"fileUri": "gs://b/x", "mimeType": "image/png"}}],
        ),
        (Media(mime="", uri="files/1"), [{"fileData": {"fileUri": "files/1"}}]),
    ],
)
def test_each_part_of_a_model_turn(part: Part, wire: list[Any]) -> None:
    assert contents_of(user("q"), model(part), user("z"))[1] == {"role": "model", "parts": wire}


def test_an_unsigned_thought_is_not_sent_back() -> None:
    assert contents_of(user("q"), model(Thought(text="hm"), "a"))[1]["parts"] == [{"text": "a"}]
    assert len(contents_of(user("q"), model(Thought(text="hm")))) == 1


def test_c4_an_empty_text_is_sent_only_for_its_signature() -> None:
    foreign = Text(text="", signature=type(OURS)("x", "vertex-g3"))
    assert contents_of(user("q"), model("a", foreign))[1]["parts"] == [{"text": "a"}]
    assert len(contents_of(user("q"), model(foreign), user("z"))) == 2


@pytest.mark.parametrize(
    ("to", "identity"), [(NEW, {"id": "toolu_1"}), (OLD, {}), ("gemini-3-flash-preview", {"id": "toolu_1"})]
)
def test_c8_ids_go_only_where_they_are_known(to: str, identity: dict[str, str]) -> None:
    _, asked, answered = contents_of(user("q"), model(call()), user(result(1, "ok")), to=to)
    found = asked["parts"][0]["functionCall"]
    assert found == {"name": "read", "args": {"path": "a"}, **identity}
    response = answered["parts"][0]["functionResponse"]
    assert response == {"name": "read", "response": {"output": "ok"}, **identity}
    assert answered["role"] == "user"


def test_p2_arguments_leave_byte_for_byte() -> None:
    args = rb'{ "b": 1.0, "a": "\u00e9\\n\t", "big": 12345678901234567890123 }'
    from tests.unit.dialects.gemini.builders import encode

    assert args in encode(user("q"), model(ToolCall(id="t", name="read", args=args))).body


@pytest.mark.parametrize(
    ("content", "is_error", "response"),
    [
        (("ok",), False, {"output": "ok"}),
        (("a", "b"), False, {"output": "a\nb"}),
        (("no",), True, {"error": "no"}),
        ((), False, {"output": ""}),
        ((), True, {"error": ""}),
        (('{"$ref":"#/x"}',), False, {"output": '{"$ref":"#/x"}'}),
        (("[1,2]",), False, {"output": "[1,2]"}),
        ((PNG,), False, {"output": "1 file(s) attached."}),
        ((PNG, "see", HEIC), False, {"output": "see"}),
        ((PNG, PNG), True, {"error": "2 file(s) attached."}),
    ],
)
def test_c5_a_result_is_always_an_object(content: tuple[Any, ...], is_error: bool, response: Any) -> None:
    turn = contents_of(user("q"), model(call()), user(result(1, *content, is_error=is_error)))[2]
    assert turn["parts"][0]["functionResponse"]["response"] == response


@pytest.mark.parametrize(
    ("answered", "is_error", "response"),
    [
        (b'{"items":{"$ref":"#/x"}}', False, {"output": '{"items":{"$ref":"#/x"}}'}),
        (b'{"$ref":"#/x","a":1}', True, {"error": '{"$ref":"#/x","a":1}'}),
        (b'{"output":[{"$ref":"#/x"}]}', False, {"output": '[{"$ref":"#/x"}]'}),
        (b'{"error":{"a":{"$ref":1}}}', True, {"error": '{"a":{"$ref":1}}'}),
        (b'{"\\u0024ref":"#/x"}', False, {"output": '{"$ref":"#/x"}'}),
        (b'{"found":"$ref","a":["$ref"]}', False, {"found": "$ref", "a": ["$ref"]}),
    ],
)
def test_c5_a_reference_in_what_a_tool_answered_is_no_file_of_googles(
    answered: bytes, is_error: bool, response: Any
) -> None:
    """A tool that reads JSON schemas answers with `$ref` keys, and Google refuses each that names no file (400)."""
    given = ToolResult(call_id="toolu_1", name="read", response=answered, is_error=is_error)
    asked = (user("q"), model(call()), user(given))
    assert contents_of(*asked)[2]["parts"][0]["functionResponse"]["response"] == response
    moved = [note.where for note in notes_of(*asked) if note.kind == "moved"]
    assert moved == ["messages"] * (response != json.loads(answered))


def test_c5_files_that_a_gemini_client_has_named_may_be_referred_to() -> None:
    named = b'{"functionResponse":{"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBO","displayName":"a"}}]}}'
    given = ToolResult(call_id="toolu_1", name="read", response=b'{"see":{"$ref":"a"}}', native=named)
    answered = contents_of(user("q"), model(call()), user(given))[2]["parts"][0]["functionResponse"]
    assert answered["response"] == {"see": {"$ref": "a"}}


@pytest.mark.parametrize(
    ("to", "media", "inside", "beside"),
    [
        (NEW, PNG, [PNG_WIRE], []),
        (NEW, PDF, [PDF_WIRE], []),
        (NEW, HEIC, None, [HEIC_WIRE]),
        (
            NEW,
            Media(mime="image/png", uri="gs://x"),
            None,
            [{"fileData": {"fileUri": "gs://x", "mimeType": "image/png"}}],
        ),
        (OLD, PNG, None, [PNG_WIRE]),
        (OLD, PDF, None, [PDF_WIRE]),
    ],
)
def test_j1_files_in_results(to: str, media: Media, inside: Any, beside: list[Any]) -> None:
    parts = contents_of(user("q"), model(call()), user(result(1, "see", media)), to=to)[2]["parts"]
    assert parts[0]["functionResponse"].get("parts") == inside
    assert parts[1:] == ([{"text": "Files returned by read:"}, *beside] if beside else [])


def test_j1_c9_all_responses_come_before_the_files_beside_them() -> None:
    parts = contents_of(
        user("q"), model(call(1), call(2)), user(result(1, PNG), result(2, "b", HEIC)), to=OLD
    )[2]["parts"]
    assert [next(iter(part)) for part in parts] == [
        "functionResponse", "functionResponse", "text", "inlineData", "text", "inlineData",
    ]  # fmt: skip
    assert (parts[3], parts[5]) == (PNG_WIRE, HEIC_WIRE)


def test_c9_text_beside_results_goes_behind_them() -> None:
    parts = contents_of(user("q"), model(call()), user("by the way", result(1, "ok")))[2]["parts"]
    assert [next(iter(part)) for part in parts] == ["functionResponse", "text"]


def test_c4_a_message_without_parts_vanishes() -> None:
    assert [turn["role"] for turn in contents_of(user("q"), model(), user("z"))] == ["user", "user"]


def reminded(text: str) -> str:
    return f"<system-reminder>\n{text}\n</system-reminder>"


REMINDED = "<system-reminder>\nbe brief\n</system-reminder>"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((remark("be brief"),), [("user", [{"text": REMINDED}])]),
        ((remark(REMINDED),), [("user", [{"text": REMINDED}])]),
        (
            (remark("be", "brief"),),
            [("user", [{"text": f"{reminded('be')}\n\n{reminded('brief')}"}])],
        ),
        ((user("q"), remark("")), [("user", [{"text": "q"}])]),
        ((user("q"), remark()), [("user", [{"text": "q"}])]),
        ((user("q"), model("a"), remark("")), [("user", [{"text": "q"}]), ("model", [{"text": "a"}])]),
        ((remark(""), user("q")), [("user", [{"text": "q"}])]),
        ((user("q"), remark("be brief")), [("user", [{"text": "q"}, {"text": REMINDED}])]),
        (
            (user("q"), model("a"), remark("be brief"), user("z")),
            [
                ("user", [{"text": "q"}]),
                ("model", [{"text": "a"}]),
                ("user", [{"text": REMINDED}]),
                ("user", [{"text": "z"}]),
            ],
        ),
    ],
)
def test_f1_a_remark_keeps_its_place(messages: tuple[Message, ...], expected: list[Any]) -> None:
    assert [(turn["role"], turn["parts"]) for turn in contents_of(*messages)] == expected


@pytest.mark.parametrize(
    ("content", "is_error", "response"),
    [
        (("ok",), False, {"output": f"ok\n\n{REMINDED}"}),
        (("no",), True, {"error": f"no\n\n{REMINDED}"}),
        ((), False, {"output": REMINDED}),
    ],
)
def test_f1_a_remark_behind_results_goes_into_the_last_one(
    content: tuple[str, ...], is_error: bool, response: Any
) -> None:
    turns = contents_of(
        user("q"),
        model(call(1), call(2)),
        user(result(1, "first"), result(2, *content, is_error=is_error)),
        remark("be brief"),
    )
    assert len(turns) == 3
    assert [part["functionResponse"]["response"] for part in turns[2]["parts"]] == [
        {"output": "first"},
        response,
    ]


@pytest.mark.parametrize(
    ("answered", "response"),
    [
        (
            b'{"exit_status":"0","stdout":"ok"}',
            {"exit_status": "0", "stdout": "ok", "system_reminder": REMINDED},
        ),
        (b'{"output":[1]}', {"output": [1], "system_reminder": REMINDED}),
        (b'{"error":{"a":1}}', {"error": {"a": 1}, "system_reminder": REMINDED}),
        (b'{"output":"ok"}', {"output": f"ok\n\n{REMINDED}"}),
    ],
)
def test_f1_a_remark_changes_nothing_that_a_tool_answered_in_json(answered: bytes, response: Any) -> None:
    json_result = ToolResult(call_id="toolu_1", name="read", response=answered)
    turns = contents_of(user("q"), model(call()), user(json_result), remark("be brief"))
    assert turns[2]["parts"][0]["functionResponse"]["response"] == response


def test_j1_a_file_in_a_remark_is_not_lost() -> None:
    assert contents_of(user("q"), remark("look", PNG))[0]["parts"][-1] == PNG_WIRE
    assert contents_of(user("q"), model("a"), remark(PNG))[2] == {"role": "user", "parts": [PNG_WIRE]}


LEFT_OUT = "(A file was left out here: Gemini reads no image/gif.)"


@pytest.mark.parametrize(
    ("given", "wire", "noted"),
    [
        (Media(mime="image/gif", data="R0lGOD"), {"text": LEFT_OUT}, True),
        (Media(mime="image/gif", uri="https://x/y.gif"), {"text": LEFT_OUT}, True),
        (Media(mime="image/png"), {"text": "(A file was left out here: it is empty.)"}, True),
        (Media(mime=""), {"text": "(A file was left out here: it is empty.)"}, True),
        (
            Media(mime="image/jpg", data="/9j/"),
            {"inlineData": {"mimeType": "image/jpeg", "data": "/9j/"}},
            False,
        ),
        (
            Media(mime="audio/wav", data="UklG"),
            {"inlineData": {"mimeType": "audio/wav", "data": "UklG"}},
            False,
        ),
        (PDF, PDF_WIRE, False),
    ],
)
def test_j3_a_file_gemini_refuses_does_not_poison_the_session(given: Media, wire: Any, noted: bool) -> None:
    """Claude takes GIFs, Gemini answers 400 to them, in every later turn too: the model is told instead."""
    assert contents_of(user("look", given))[0]["parts"] == [{"text": "look"}, wire]
    assert [(note.kind, note.where) for note in notes_of(user(given, given))] == [
        ("dropped", "messages")
    ] * noted


def test_j3_a_refused_file_in_a_result_or_a_remark_is_told_inside() -> None:
    gif = Media(mime="image/gif", data="R0lGOD")
    turns = contents_of(user("q"), model(call()), user(result(1, "see", gif)), remark(gif))
    told = turns[2]["parts"][0]["functionResponse"]["response"]["output"]
    assert told == f"see\n{LEFT_OUT}\n\n<system-reminder>\n{LEFT_OUT}\n</system-reminder>"
    assert len(turns[2]["parts"]) == 1


@pytest.mark.parametrize(
    ("own", "google", "joined"),
    [
        ("toolu_0123456789abcdef", "call_463646", "toolu_0123456789abcdef-call_463646"),
        ("toolu_0123456789abcdef", "aB3-_xyz", "toolu_0123456789abcdef-aB3-_xyz"),
        ("toolu_0123456789abcdef", "x" * 41, "toolu_0123456789abcdef-" + "x" * 41),
        ("toolu_0123456789abcdef", "x" * 42, "toolu_0123456789abcdef"),
        ("toolu_0123456789abcdef", "with space", "toolu_0123456789abcdef"),
        ("toolu_0123456789abcdef", "a/b+c=", "toolu_0123456789abcdef"),
        ("toolu_0123456789abcdef", "line\n", "toolu_0123456789abcdef"),
        ("toolu_0123456789abcdef", "ünï", "toolu_0123456789abcdef"),
    ],
)
def test_a5_c7_ids_stay_short_plain_and_lead_back(own: str, google: str, joined: str) -> None:
    assert client_id(own, google) == joined
    assert len(joined) <= 64
    assert upstream_id(joined) == (google if joined != own else own)


@pytest.mark.parametrize(
    "foreign", ["toolu_01A09q90qw90lq917835lq9", "call_abc", "", "toolu_0123456789abcde-x", "x-y", "call-1"]
)
def test_c7_an_id_of_another_maker_is_sent_as_it_is(foreign: str) -> None:
    assert upstream_id(foreign) == foreign
