"""A wrong script is told where and why, all at once; a right one is read as it is meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.emulator.script.load import ScriptError, ScriptProblem, load_data, load_script, load_text

GOOD = """\
# A script with a bit of everything.
otherwise: refuse
steps:
  - name: first
    when: {says: "weather", model: "gemini-3*", method: stream, declares: [get_*], request: 1}
    expect: {contains: {generationConfig: {temperature: 0}}, not: {system: rude}}
    reply:
      - thought: "Let me look"
      - text: "One moment."
      - call: {name: get_weather, args: {city: Paris, exact: true}}
    finish: STOP
    usage: {promptTokenCount: 12}
    split: 7
    delay: 0.2
    fault: {cut_after: 200}
  - when: {any: [{answers: get_weather}, {results: {starts: '{'}}]}
    times: always
    optional: true
    chunks:
      - parts: [{text: hi}]
        finish: STOP
      - {wait: 0.5}
      - {raw: "data: {}\\r\\n\\r\\n"}
      - {error: {code: 503}}
      - {cut: reset}
  - http: {status: 429, headers: {Retry-After: "1"}, json: {error: {code: 429}}}
"""


def complaints(text: str) -> list[str]:
    with pytest.raises(ScriptError) as caught:
        load_text(text, "s.yaml")
    return str(caught.value).split("\n")


def test_every_key_of_the_format_is_read() -> None:
    loaded = load_text(GOOD)
    first, second, third = loaded.script.steps
    assert loaded.lines == (4, 16, 26)
    assert first.when is not None
    assert (first.when.says, first.when.declares, first.split) == ("weather", ["get_*"], 7)
    assert isinstance(first.reply, list)
    assert first.reply[2].call is not None
    assert first.reply[2].call.args == {"city": "Paris", "exact": True}
    assert second.times == "always"
    assert second.chunks is not None
    assert [bit.cut for bit in second.chunks] == [None, None, None, None, "reset"]
    assert third.http is not None
    assert third.http.json == {"error": {"code": 429}}


def test_all_problems_are_told_at_once_with_line_place_and_hint() -> None:
    script = """\
otherwise: modle
stesp: []
steps:
  - whn: {says: x}
    reply: a
  - reply:
      - call: {args: {}}
      - text: hi
      - thought: late
    http: {body: a, json: {}}
  - when: {says: "(", any: []}
    times: 0
    fault: quota_minut
"""
    assert complaints(script) == [
        "s.yaml:1: otherwise: expected model or refuse, got 'modle'; did you mean model?",
        "s.yaml:2: stesp: there is no such key; did you mean steps?",
        "s.yaml:4: steps[0].whn: there is no such key; did you mean when?",
        "s.yaml:7: steps[1].reply[0].call: name is missing",
        "s.yaml:9: steps[1].reply[2]: thought comes before text in Gemini's answers; chunks can have any order",
        "s.yaml:10: steps[1].http: a step has one answer, and this one has reply and http",
        "s.yaml:10: steps[1].http.json: an answer has one body, and this one has body and json",
        "s.yaml:11: steps[2].when.says: this is no regular expression: missing ), unterminated subpattern "
        "at position 0 (for an exact text write {is: …})",
        "s.yaml:11: steps[2].when.any: of an empty list nothing can hold",
        "s.yaml:12: steps[2].times: expected a whole number >= 1, got 0",
        "s.yaml:13: steps[2].fault: there is no fault 'quota_minut'; did you mean quota_minute?",
    ]


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("steps:\n- reply: a\n  reply: b", "s.yaml:3: steps[0].reply: this key is already in line 2"),
        ("validate: no", "validate: expected true or false, got 'no' (YAML 1.2 knows only true and false)"),
        ("steps:\n- delay: 010", "got '010' (a number with leading zeros is text)"),
        ("steps:\n- chunks:\n  - cut: yes", "(YAML 1.2 knows only true and false)"),
        ("steps: {reply: a}", "s.yaml:1: steps: expected a list, got a mapping"),
        ("- reply: a", "s.yaml:1: expected a mapping, got a list"),
        ("steps:\n- finish: STOP", "steps[0].finish: finish goes with reply"),
        (
            "steps:\n- chunks:\n  - usage: {}\n    wait: 1",
            "s.yaml:3: steps[0].chunks[0].usage: usage goes with parts",
        ),
        (
            "steps:\n- chunks:\n  - raw: a\n    wait: 1",
            "say one of parts, json, error, raw, wait, cut, not 2",
        ),
        ("steps:\n- http: {pieces: [{base64: '?'}]}", "steps[0].http.pieces[0].base64: this is not base64"),
        ("steps:\n- http: {pieces: [{text: a, wait: 1}]}", "say one of text, base64, wait, cut, not 2"),
        ("steps:\n- http: {headers: {'a b': c}}", "this cannot be the name of a header"),
        ('steps:\n- http: {headers: {a: "b\\nc"}}', "this cannot be the value of a header"),
        ("steps:\n- http: {headers: {Content-Length: 3}}", "this header is written by the emulator"),
        ("steps:\n- when: {header: {a: '('}}", "steps[0].when.header.a: this is no regular expression"),
        ("steps:\n- when: {not: {says: '('}}", "steps[0].when.not.says: this is no regular expression"),
        ("steps:\n- expect: {any: [{says: '('}]}", "steps[0].expect.any[0].says: this is no regular"),
        ("steps:\n- when: {says: {}}", "steps[0].when.says: say is, starts or sha256"),
        ("steps:\n- reply: [{text: a, thought: b}]", "say one of thought, text, call, not 2"),
        ("steps:\n- reply: [{call: {name: ''}}]", "a function has a name"),
        ("steps:\n- fault: {a: 1, b: 2}", "say one fault per mapping"),
        ("steps:\n- times: twice", "steps[0].times: expected a whole number or always, got 'twice'"),
        ("steps:\n- chunks: [{cut: now}]", "expected true or false or reset, got 'now'"),
        ("steps:\n- fault: {cut_after: soon}", "steps[0].fault: the fault cut_after takes bytes, not 'soon'"),
        ("steps:\n- fault: [overloaded, {nope: 1}]", "steps[0].fault[1]: there is no fault 'nope'"),
        ("steps:\n- fault: no_finish\n  http: {}", "no_finish changes what the model says"),
        ("steps: [", "s.yaml:1: this is not YAML: "),
        ("steps: []\n\x01", "s.yaml:2: this character cannot stand in YAML: U+0001"),
        ("steps: []\n---\nsteps: []", "s.yaml:2: a script is one document"),
        ("steps: !!python/object []", "steps: tags are not understood here: tag:yaml.org,2002:python/object"),
        ("otherwise: !mine model", "otherwise: tags are not understood here: !mine"),
        ("? [a]\n: b", "a key must be text"),
        ("steps: *a", "there is no anchor &a before this"),
        ("steps: &a [*a]", "there is no anchor &a before this"),
        ("steps: " + "[" * 200, "nested deeper than 100 levels"),
    ],
)
def test_a_mistake_is_explained(script: str, complaint: str) -> None:
    assert any(complaint in line for line in complaints(script)), complaints(script)


def test_what_yaml_1_1_would_change_stays_text() -> None:
    """`no`, `on`, dates, times and numbers with zeros are what the author wrote."""
    words = "a: no, on: yes, day: 2026-01-02, time: 12:30, zip: 01234"
    args = f"{{{words}, n: 7, f: 1.5, t: true, z: null, big: 99999999999999999999}}"
    loaded = load_text(f"steps:\n- reply: [{{call: {{name: f, args: {args}}}}}]")
    reply = loaded.script.steps[0].reply
    assert isinstance(reply, list)
    assert reply[0].call is not None
    expected: dict[str, Any] = {"a": "no", "on": "yes", "day": "2026-01-02", "time": "12:30", "zip": "01234"}
    expected |= {"n": 7, "f": 1.5, "t": True, "z": None, "big": 1e20}
    assert reply[0].call.args == expected


def test_text_is_text_where_text_is_due() -> None:
    step = load_text("steps:\n- when: {says: 404, header: {x: 007, y: 1e3}}\n  reply: 42").script.steps[0]
    assert step.when is not None
    assert (step.when.says, step.when.header, step.reply) == ("404", {"x": "007", "y": "1e3"}, "42")


def test_json_is_read_by_the_same_loader() -> None:
    text = '{\n\t"steps": [\n\t\t{"reply": "\\ud83d\\ude00 \\\\ud83d\\/", "times":2}\n\t]\n}'
    loaded = load_text(text)
    assert loaded.script.steps[0].reply == json.loads(text)["steps"][0]["reply"] == "😀 \\ud83d/"
    assert loaded.lines == (3,)


def test_a_script_comes_from_a_file_a_text_or_a_value(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("steps:\n- reply: hi\n")
    scripts = [
        load_script(source).script
        for source in (file, str(file), file.read_text(), {"steps": [{"reply": "hi"}]})
    ]
    assert all(script == scripts[0] for script in scripts)
    with pytest.raises(ScriptError, match=r"b\.yaml: No such file"):
        load_script(tmp_path / "b.yaml")
    with pytest.raises(ScriptError, match=r"script: steps\[0\]\.says: there is no such key"):
        load_script({"steps": [{"says": "x"}]})


def test_anchors_work_and_cannot_explode() -> None:
    loaded = load_text("steps:\n- &a {reply: hi}\n- *a\n")
    assert loaded.script.steps[0] == loaded.script.steps[1]
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n"
        for before, name in zip("abcdefg", "bcdefgh", strict=True)
    )
    assert complaints(bomb)[0].endswith("its aliases make it too large")


@pytest.mark.parametrize("value", [{"steps": [{"reply": object()}]}, {"steps": [{1: 2}]}, {"steps": 3}])
def test_a_value_that_is_no_script_is_a_script_error(value: Any) -> None:
    with pytest.raises(ScriptError):
        load_data(value)


def must_load_or_complain(text: str) -> None:
    found: list[ScriptProblem] = []
    try:
        loaded = load_text(text, "fuzz")
    except ScriptError as error:
        found += error.problems or [ScriptProblem(0, "", "no problem is named")]
    else:
        assert len(loaded.lines) == len(loaded.script.steps)
    assert all(problem.line >= 1 for problem in found), found


TOKENS = [
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    "\n",
    "  ",
    "&a",
    "*a",
    "!!str",
    "null",
    "'",
    '"',
    "|",
    ">",
    "%",
    "\t",
    "0",
    "-1",
]
TOKENS += [
    "1e999",
    "steps",
    "when",
    "any",
    "not",
    "\x00",
    "\ufeff",
    "\ud800",
    "\\ud800",
    "~",
    "?",
    "<<",
    ".inf",
    "-",
]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_mutated_script_is_read_or_refused_with_a_line(data: st.DataObject) -> None:
    text = GOOD
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 40))
        text = text[:start] + data.draw(st.sampled_from(TOKENS)) + text[start + length :]
    must_load_or_complain(text)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from("steps when reply chunks http says any not fault call name".split()), inner
        )
    ),
    max_leaves=15,
)


@settings(max_examples=100, deadline=None)
@given(_values)
def test_any_json_is_read_or_refused_with_a_line(value: Any) -> None:
    must_load_or_complain(json.dumps(value))
    must_load_or_complain(json.dumps({"steps": [value]}))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_line(text: str) -> None:
    must_load_or_complain(text)
