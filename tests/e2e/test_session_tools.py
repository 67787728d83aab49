"""Tools that only the gateway's store knows, behind every dialect, with a real gateway and the strict emulator."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.e2e.directives import together, use
from tests.e2e.fake_google import Google, emulated_google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.props.gateway_tool_clients import SPEAKERS, Seen, Speaker

Json = dict[str, Any]

OTHER_KEY = "e2e-another-gateway-key-0123456789"
WAIT_S = 1.0
#: For a whole answer, and for a stream.
PATHS = {
    "anthropic": ("/v1/messages",) * 2,
    "openai_chat": ("/v1/chat/completions",) * 2,
    "openai_responses": ("/v1/responses",) * 2,
    "gemini": (
        "/v1beta/models/MODEL:generateContent",
        "/v1beta/models/MODEL:streamGenerateContent?alt=sse",
    ),
    "bedrock": ("/model/MODEL/converse", "/model/MODEL/converse-stream"),
    "amazonq": ("/",) * 2,
}
HEADERS = {
    "amazonq": {
        "x-amz-target": "AmazonCodeWhispererStreamingService.GenerateAssistantResponse",
        "content-type": "application/x-amz-json-1.0",
    }
}
MODELS = ("gemini-2.5-flash", "gemini-3.8-flash")

every_dialect = pytest.mark.parametrize("dialect", SPEAKERS)
both_ways = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@pytest.fixture(scope="module")
def shared() -> Iterator[Google]:
    with emulated_google() as google:
        yield google


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, shared: Google) -> Iterator[Gateway]:
    settings = {"SESSIONS_FOLLOW_UP_WAIT_S": str(WAIT_S), "SERVER_PING_S": "0.2", "SERVER_KEYS": OTHER_KEY}
    gateway = Gateway(tmp_path_factory.mktemp("gateway") / "home", shared.url, **settings)
    gateway.start()
    yield gateway
    gateway.stop()
    assert "Traceback" not in gateway.log()


@pytest.fixture
def google(shared: Google) -> Iterator[Google]:
    """A refusal fails the test."""
    shared.forget()
    yield shared
    assert not shared.refusals(), "\n".join(shared.refusals())


class Admin:
    """The admin API of one session."""

    def __init__(self, gateway: Gateway, session: str, key: str = GATEWAY_KEY) -> None:
        self._url = f"{gateway.url}/v1/sessions/{session}"
        self._headers = {"authorization": f"Bearer {key}"}

    def put(self, *names: str, **more: Any) -> None:
        tools = [
            {"name": name, "description": name, "parameters": {"type": "OBJECT", "properties": _N}}
            for name in names
        ]
        self._ask("PUT", "tools", {"tools": tools, **more})

    def calls(self, status: str = "") -> list[Json]:
        found: list[Json] = self._ask("GET", f"calls?status={status}" if status else "calls")["calls"]
        return found

    def answer(self, *said: str) -> None:
        """Results for the open calls, in their order."""
        pairs = zip(self.calls("open"), said, strict=True)
        self._ask(
            "POST",
            "results",
            {"results": [{"call_id": call["id"], "output": words} for call, words in pairs]},
        )

    def clear(self) -> None:
        self._ask("DELETE", "tools")

    def _ask(self, method: str, what: str, body: Json | None = None) -> Json:
        answer = requests.request(method, f"{self._url}/{what}", json=body, headers=self._headers, timeout=30)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


_N = {"n": {"type": "INTEGER"}}


class Client:
    """A program in one dialect that knows nothing of any session's tools; it has `look`, a tool of its own."""

    def __init__(
        self,
        gateway: Gateway,
        dialect: str,
        session: str = "",
        *,
        model: str = "gemini-3.8-flash",
        stream: bool = False,
        tools: tuple[str, ...] = ("look",),
        key: str = GATEWAY_KEY,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.speaker: Speaker = SPEAKERS[dialect]()
        self._url = gateway.url
        self._dialect, self._model, self._stream, self._tools = dialect, model, stream, tools
        self._headers = {"authorization": f"Bearer {key}", **(headers or HEADERS.get(dialect, {}))}
        if session:
            self._headers["x-dragoman-session"] = session

    def say(self, words: str) -> Seen:
        self.speaker.say(words)
        return self.ask()

    def ask(self) -> Seen:
        answer = self.send()
        assert answer.status_code == 200, answer.text
        return self.speaker.hear(answer.content, stream=self._stream, keeps_thinking=True)

    def send(self, **more: Any) -> requests.Response:
        body = {**self.speaker.body(self._tools, stream=self._stream), **more}
        path = PATHS[self._dialect][self._stream].replace("MODEL", self._model)
        if self._model not in path:
            body["model"] = self._model
        return requests.post(self._url + path, json=body, headers=self._headers, timeout=60)


def parts(request: Json, kind: str) -> list[list[Json]]:
    """The calls or responses of each content that has some."""
    found = [[part[kind] for part in content["parts"] if kind in part] for content in request["contents"]]
    return [some for some in found if some]


def number(seen: Seen) -> int:
    return seen.text.count("[waiting for ")


@both_ways
@every_dialect
@pytest.mark.parametrize("model", MODELS)
def test_a_tool_nobody_declared_is_called_captured_and_answered(
    house: Gateway, google: Google, dialect: str, stream: bool, model: str
) -> None:
    session = f"one-{dialect}-{stream}-{model}"
    admin = Admin(house, session)
    admin.put("weather")
    client = Client(house, dialect, session, stream=stream, model=model)
    seen = client.say(use("weather", {"n": 1}))
    assert (seen.calls, seen.finish) == ([], "end")
    (call,) = admin.calls()
    assert seen.text == f"[waiting for weather · {call['id']}]"
    assert (call["name"], call["args"], call["status"]) == ("weather", {"n": 1}, "open")
    assert google.declared() == ["look", "weather"]
    admin.answer("It will rain.")
    seen = client.say("go on")
    assert "[waiting" not in seen.text
    sent = google.requests()[-1]
    (called,), (told,) = parts(sent, "functionCall"), parts(sent, "functionResponse")
    assert [(one["name"], one["args"]) for one in called] == [("weather", {"n": 1})]
    assert [(one["name"], one["response"]) for one in told] == [("weather", {"output": "It will rain."})]
    assert [one["status"] for one in admin.calls()] == ["delivered"]
    client.say("say goodbye")
    again = google.requests()[-1]
    assert again["contents"][: len(sent["contents"])] == sent["contents"]
    assert google.sentinels() == 0


@both_ways
@every_dialect
def test_parallel_calls_wait_together_and_a_second_step_follows(
    house: Gateway, google: Google, dialect: str, stream: bool
) -> None:
    session = f"parallel-{dialect}-{stream}"
    admin = Admin(house, session)
    admin.put("weather", "clock")
    client = Client(house, dialect, session, stream=stream, tools=())
    client.say(together(use("weather", {"n": 1}), use("clock", {"n": 2}), use("weather", {"n": 3})))
    assert [(one["name"], one["args"]["n"]) for one in admin.calls()] == [
        ("weather", 1),
        ("clock", 2),
        ("weather", 3),
    ]
    admin.answer("one", "two", "three")
    client.say(use("clock", {"n": 4}))
    assert [one["args"]["n"] for one in admin.calls("open")] == [4]
    admin.answer("four")
    client.say("say bye")
    sent = google.requests()[-1]
    told = [[one["response"]["output"] for one in some] for some in parts(sent, "functionResponse")]
    assert told == [["one", "two", "three"], ["four"]]
    assert [len(some) for some in parts(sent, "functionCall")] == [3, 1]
    assert google.sentinels() == 0


@both_ways
@every_dialect
@pytest.mark.parametrize("order", [("weather", "look"), ("look", "weather")])
def test_a_mixed_step_is_whole_when_both_have_answered(
    house: Gateway, google: Google, dialect: str, stream: bool, order: tuple[str, str]
) -> None:
    session = f"mixed-{dialect}-{stream}-{order[0]}"
    admin = Admin(house, session)
    admin.put("weather")
    client = Client(house, dialect, session, stream=stream)
    seen = client.say(together(*(use(name, {"n": 1}) for name in order)))
    assert [call.name for call in seen.calls] == ["look"]
    assert "[waiting" not in seen.text
    admin.answer("rain")
    client.speaker.answer([(seen.calls[0], "a tree")])
    client.ask()
    sent = google.requests()[-1]
    assert [one["name"] for some in parts(sent, "functionCall") for one in some] == list(order)
    answers = {"weather": "rain", "look": "a tree"}
    told = [one["response"]["output"] for some in parts(sent, "functionResponse") for one in some]
    assert told == [answers[name] for name in order]
    assert google.sentinels() == 0


@every_dialect
def test_a_follow_up_without_results_is_refused_in_the_clients_own_words(
    house: Gateway, google: Google, dialect: str
) -> None:
    for stream in (False, True):
        session = f"early-{dialect}-{stream}"
        admin = Admin(house, session)
        admin.put("weather")
        client = Client(house, dialect, session, stream=stream)
        client.say(together(use("weather", {"n": 1}), use("weather", {"n": 2})))
        client.speaker.say("and?")
        before = len(google.requests())
        answer = client.send()
        late = stream and dialect not in ("bedrock", "amazonq")  # their streams open with the first word
        assert answer.status_code == (200 if late else 409), answer.text
        assert all(call["id"] in answer.text for call in admin.calls("open"))
        assert not late or "error" in answer.text
        assert len(google.requests()) == before
        admin.answer("one", "two")
        assert client.ask().finish == "end"


def test_a_stream_that_waits_is_kept_alive_until_the_results_are_there(
    house: Gateway, google: Google
) -> None:
    admin = Admin(house, "patient")
    admin.put("weather")
    client = Client(house, "anthropic", "patient", stream=True)
    client.say(use("weather", {"n": 1}))
    client.speaker.say("go on")

    def later() -> None:
        time.sleep(0.7)
        admin.answer("sunny at last")

    helper = threading.Thread(target=later)
    helper.start()
    answer = client.send()
    helper.join()
    assert answer.content.count(b"event: ping") >= 1
    seen = client.speaker.hear(answer.content, stream=True, keeps_thinking=True)
    assert seen.finish == "end"
    assert "sunny at last" in json.dumps(google.requests()[-1])


SESSIONS: dict[str, Callable[[str], tuple[dict[str, str], Json]]] = {
    "anthropic": lambda name: ({"x-claude-code-session-id": name}, {}),
    "openai_chat": lambda name: ({}, {"prompt_cache_key": name}),
    "openai_responses": lambda name: ({}, {"prompt_cache_key": name}),
}


@pytest.mark.parametrize("dialect", SESSIONS)
def test_a_session_is_known_by_what_the_client_sends_anyway_and_its_other_requests_go_their_way(
    house: Gateway, google: Google, dialect: str
) -> None:
    headers, fields = SESSIONS[dialect](f"implicit-{dialect}")
    admin = Admin(house, f"implicit-{dialect}")
    admin.put("weather")
    client, title = (Client(house, dialect, headers=headers) for _ in range(2))

    def ask(one: Client, words: str) -> Seen:
        one.speaker.say(words)
        answer = one.send(**fields)
        assert answer.status_code == 200, answer.text
        return one.speaker.hear(answer.content, stream=False, keeps_thinking=True)

    assert number(ask(client, use("weather", {"n": 1}))) == 1
    assert ask(title, "say a title").text == "a title"
    admin.answer("rain")
    assert ask(title, "say another title").text == "another title"
    assert [one["status"] for one in admin.calls()] == ["answered"]
    ask(client, "go on")
    assert [one["status"] for one in admin.calls()] == ["delivered"]
    assert "rain" in json.dumps(google.requests()[-1])


@both_ways
@every_dialect
def test_the_same_question_again_goes_on_from_the_calls(
    house: Gateway, google: Google, dialect: str, stream: bool
) -> None:
    session = f"again-{dialect}-{stream}"
    admin = Admin(house, session)
    admin.put("weather")
    client = Client(house, dialect, session, stream=stream)
    client.say("say hello")
    client.speaker.say(use("weather", {"n": 1}))
    asked = list(client.speaker.history)
    client.ask()
    client.speaker.history[:] = asked
    admin.answer("snow")
    seen = client.ask()
    assert seen.calls == []
    assert "snow" in seen.text
    assert len(admin.calls()) == 1


def test_in_a_session_the_client_names_whatever_comes_next_brings_the_results(
    house: Gateway, google: Google
) -> None:
    admin = Admin(house, "named")
    admin.put("weather")
    Client(house, "anthropic", "named").say(use("weather", {"n": 1}))
    admin.answer("hail")
    seen = Client(house, "openai_chat", "named").say("what is the weather like?")
    assert "hail" in json.dumps(google.requests()[-1])
    assert seen.calls == []
    Client(house, "openai_chat", "named").say("say nothing new")
    assert "hail" not in json.dumps(google.requests()[-1])


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/gemini"])
def test_conversations_the_gateway_keeps_have_their_tools_by_their_own_name(
    house: Gateway, google: Google, path: str
) -> None:
    name = f"kept{path.replace('/', '-')}"
    admin = Admin(house, name)
    admin.put("weather")

    def say(words: str) -> Json:
        body = {"model": "gemini-3.8-flash", "input": words, "conversation": name}
        headers = {"authorization": f"Bearer {GATEWAY_KEY}"}
        answer = requests.post(house.url + path, json=body, headers=headers, timeout=60)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    assert "[waiting for weather" in json.dumps(say(use("weather", {"n": 1})), ensure_ascii=False)
    admin.answer("fog")
    say("go on")
    told = [one["response"] for some in parts(google.requests()[-1], "functionResponse") for one in some]
    assert told == [{"output": "fog"}]
    say("say bye")
    assert parts(google.requests()[-1], "functionResponse") != []
    assert "[waiting" not in json.dumps(google.requests()[-1])


def test_the_clients_tools_may_go_and_a_forced_call_is_forced_once(house: Gateway, google: Google) -> None:
    admin = Admin(house, "alone")
    forced = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["clock"]}}
    admin.put("weather", "clock", keep_client_tools=False, toolConfig=forced)
    client = Client(house, "anthropic", "alone")
    assert number(client.say("hello there")) == 1
    assert google.declared() == ["weather", "clock"]
    assert google.requests()[-1]["toolConfig"] == forced
    (call,) = admin.calls()
    assert call["name"] == "clock"


@pytest.mark.parametrize("again", [False, True], ids=["goes on", "asks again"])
def test_a_tool_that_was_searched_for_stays_declared(tmp_path: Path, google: Google, again: bool) -> None:
    gateway = Gateway(tmp_path / "home", google.url, TOOLS_SEARCH_ABOVE="5")
    gateway.start()
    try:
        admin = Admin(gateway, "many")
        admin.put(*(f"tool_{number:02}" for number in range(20)))
        client = Client(gateway, "anthropic", "many")
        steps = f"{use('find_tools', {'query': 'tool_15'})} then {use('tool_15', {'n': 1})}"
        client.speaker.say(steps)
        asked = list(client.speaker.history)
        assert number(client.ask()) == 1
        admin.answer("rain")
        if again:
            client.speaker.history[:] = asked
        else:
            client.speaker.say("go on")
        client.ask()
    finally:
        gateway.stop()
    declared = [one["tools"][0]["functionDeclarations"] for one in google.requests()]
    names = [[tool["name"] for tool in tools] for tools in declared]
    assert names[0] == ["look", "find_tools", *(f"tool_{number:02}" for number in range(5))]
    assert names[1][-1] == "tool_15"
    assert names[2] == names[1]


@every_dialect
def test_a_tool_of_the_clients_keeps_its_name(house: Gateway, google: Google, dialect: str) -> None:
    admin = Admin(house, f"names-{dialect}")
    admin.put("look")
    client = Client(house, dialect, f"names-{dialect}")
    seen = client.say(together(use("look", {"n": 1}), use("gateway_look", {"n": 2})))
    assert [(call.name, call.args) for call in seen.calls] == [("look", {"n": 1})]
    assert [(call["name"], call["args"]) for call in admin.calls()] == [("look", {"n": 2})]


def test_nobody_else_gets_the_tools(house: Gateway, google: Google) -> None:
    Admin(house, "mine").put("weather")
    Client(house, "anthropic", "mine", key=OTHER_KEY).say("say hello")
    assert google.declared() == ["look"]
    Client(house, "anthropic", "mine").say("say hello")
    assert google.declared() == ["look", "weather"]
    Admin(house, "mine").clear()
    google.forget()
    Client(house, "anthropic", "mine").say("say hello")
    assert google.declared() == ["look"]
    assert Client(house, "anthropic", "x" * 513).send().status_code == 400


def test_what_was_captured_survives_kill_dash_nine(tmp_path: Path, google: Google) -> None:
    gateway = Gateway(tmp_path / "home", google.url)
    gateway.start()
    try:
        admin = Admin(gateway, "s")
        admin.put("weather")
        client = Client(gateway, "anthropic", "s", stream=True)
        client.say(use("weather", {"n": 1}))
        gateway.kill()
        gateway.restart()
        admin.answer("calm")
        gateway.kill()
        gateway.restart()
        client.say("go on")
        assert "calm" in json.dumps(google.requests()[-1])
        assert google.sentinels() == 0
    finally:
        gateway.stop()


def test_a_hundred_conversations_at_once_do_not_mix(house: Gateway, google: Google) -> None:
    """Each has its own tool, its own results and its own dialect; none sees a word of another's."""
    dialects = list(SPEAKERS)

    def converse(number: int) -> tuple[int, list[Json], str]:
        session, tool, secret = f"crowd-{number}", f"tool_{number:03}", f"secret-{number:03}."
        admin = Admin(house, session)
        admin.put(tool)
        client = Client(house, dialects[number % len(dialects)], session, stream=number % 2 == 0)
        client.say(together(use(tool, {"n": number}), use(tool, {"n": -number})))
        admin.answer(f"{secret}a", f"{secret}b")
        client.say(use(tool, {"n": 1000 + number}))
        admin.answer(f"{secret}c")
        seen = client.say(f"say done {secret}")
        return number, admin.calls(), seen.text

    with ThreadPoolExecutor(24) as pool:
        done = list(pool.map(converse, range(100)))
    for number, calls, text in done:
        assert [(one["name"], one["args"]["n"], one["status"]) for one in calls] == [
            (f"tool_{number:03}", wanted, "delivered") for wanted in (number, -number, 1000 + number)
        ]
        assert f"secret-{number:03}." in text
    assert len({one["id"] for _, calls, _ in done for one in calls}) == 300
    sent = google.requests()
    assert len(sent) == 300
    for request in sent:
        words = json.dumps(request)
        tools = {
            name
            for tool in request["tools"]
            for name in (one["name"] for one in tool["functionDeclarations"])
        }
        (own,) = tools - {"look"}
        secrets = {words[at : at + 10] for at in range(len(words)) if words.startswith("secret-", at)}
        assert secrets <= {f"secret-{own[-3:]}"}
    assert google.sentinels() == 0
