"""A client of every dialect: how it asks, and how it judges what it hears, be it the answer, an error or a cut."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from google.genai import types as genai

from dragoman.http.aws_eventstream import EventMessage, EventStreamDecoder
from dragoman.http.sse import SseDecoder
from tests.chaos.raw_client import Ask, Heard
from tests.chaos.scripted_turns import TOOL, Json
from tests.corpus import check
from tests.corpus.chat_adapter import parse_chunks
from tests.props import gateway_tool_clients
from tests.props.gateway_tool_clients import Call, Seen, Speaker
from tests.unit.dialects.amazonq import builders as q
from tests.unit.dialects.amazonq.strict_reader import RustCli
from tests.unit.dialects.anthropic.stream_checks import parse
from tests.unit.dialects.bedrock.grammar import Reader

#: `answer`: all of it; `stopped`: less, and it says why; `error`: it broke, and says so; `cut`: it is just gone.
End = Literal["answer", "stopped", "error", "cut"]


class Told(msgspec.Struct, frozen=True):
    """How it ended, and what was heard until then."""

    end: End
    text: str = ""
    calls: list[tuple[str, Json]] = []
    why: str = ""


class Tongue:
    """One conversation. Every break of the dialect's rules is an AssertionError."""

    forms: tuple[bool, ...] = (True, False)  # streams, and answers in one piece

    def __init__(self, speaker: Speaker) -> None:
        self.speaker = speaker

    def ask(self, model: str, *, stream: bool) -> Ask:
        raise NotImplementedError

    def body(self, model: str, *, stream: bool) -> Json:
        return {**self.speaker.body([TOOL], stream=stream), "model": model}

    def hear(self, heard: Heard, *, stream: bool) -> Seen:
        """An answer becomes part of the conversation."""
        return self.speaker.hear(heard.body, stream=stream, keeps_thinking=True)

    def judge(self, heard: Heard, *, stream: bool) -> Told:
        if heard.status == 0:
            return Told("cut")
        if heard.status != 200:
            assert heard.whole, "half an error"
            return Told("error", why=self.refusal(heard))
        if not stream:
            return self.whole(json.loads(heard.body)) if heard.whole else Told("cut")
        return self.stream(heard)

    def refusal(self, heard: Heard) -> str:
        raise NotImplementedError

    def whole(self, answer: Json) -> Told:
        raise NotImplementedError

    def stream(self, heard: Heard) -> Told:
        raise NotImplementedError


def events_before(data: bytes, blank: bytes = b"\n\n") -> bytes:
    """Without the half event that a cut left behind."""
    return data[: data.rfind(blank) + len(blank)] if blank in data else b""


def _end(*, good: bool, whole: bool, error: str) -> End:
    """A clean stop behind which HTTP has no end, or an end without any stop, is a lie."""
    if error:
        return "error"
    assert good or not whole, "the stream ends as if all were well, and nothing says that it does"
    return "answer" if good else "cut"


class Anthropic(Tongue):
    def __init__(self) -> None:
        super().__init__(gateway_tool_clients.Anthropic())

    def ask(self, model: str, *, stream: bool) -> Ask:
        return Ask("/v1/messages", self.body(model, stream=stream), {"anthropic-version": "2023-06-01"})

    def refusal(self, heard: Heard) -> str:
        return _anthropic_error(json.loads(heard.body))

    def whole(self, answer: Json) -> Told:
        assert check.anthropic_message_problems(answer) == []
        return _anthropic_told(answer)

    def stream(self, heard: Heard) -> Told:
        data = heard.body if heard.whole else events_before(heard.body)
        return judge_messages(parse(data), whole=heard.whole)


def judge_messages(events: list[Json], *, whole: bool) -> Told:
    """Messages events by their grammar; one that fails closes its block, says so, and nothing behind it."""
    types = [event["data"]["type"] for event in events]
    error = ""
    if "error" in types:
        assert types.index("error") == len(types) - 1, "something comes behind the error"
        error = _anthropic_error(events[-1]["data"])
    message, problems = check.assemble_anthropic(events) if events else ({"content": []}, [])
    excused = {"no message_stop", "no message_delta"}
    excused |= {"error event"} if error else set()
    excused |= set() if whole else {"block left open"}
    good = types[-1:] == ["message_stop"]
    assert set(problems) <= (set() if good else excused), problems
    told = _anthropic_told(message)
    end = _end(good=good, whole=whole, error=error)
    return msgspec.structs.replace(told, end=told.end if end == "answer" else end, why=error)


def _anthropic_error(body: Json) -> str:
    assert body["type"] == "error"
    assert body["error"]["type"].endswith(("_error", "too_large")), body
    assert body["error"]["message"]
    return f"{body['error']['type']}: {body['error']['message']}"


def _anthropic_told(message: Json) -> Told:
    content = message["content"]
    stopped = message.get("stop_reason") in ("max_tokens", "refusal")
    return Told(
        "stopped" if stopped else "answer",
        "".join(block["text"] for block in content if block["type"] == "text"),
        [(block["name"], block["input"]) for block in content if block["type"] == "tool_use"],
    )


class Chat(Tongue):
    def __init__(self) -> None:
        super().__init__(gateway_tool_clients.Chat())

    def ask(self, model: str, *, stream: bool) -> Ask:
        return Ask("/v1/chat/completions", self.body(model, stream=stream))

    def refusal(self, heard: Heard) -> str:
        return _openai_error(json.loads(heard.body))

    def whole(self, answer: Json) -> Told:
        (choice,) = answer["choices"]
        return _chat_told({**choice["message"], "finish_reason": choice["finish_reason"]})

    def stream(self, heard: Heard) -> Told:
        events = parse_chunks(heard.body if heard.whole else events_before(heard.body))
        last = events[-1]["data"] if events else {}
        good = last == "[DONE]"
        error = _openai_error(last) if not good and "error" in last else ""
        message, problems = check.assemble_chat(events)
        excused = {"no [DONE]", "no finish_reason"} | ({"error chunk"} if error else set())
        excused |= set() if events else {"chunk ids differ: set()", "no delta.role assistant"}
        assert set(problems) <= (set() if good else excused), problems
        told = _chat_told(message)
        end = _end(good=good, whole=heard.whole, error=error)
        return msgspec.structs.replace(told, end=told.end if end == "answer" else end, why=error)


def _openai_error(body: Json) -> str:
    error = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    assert error["type"] in (
        "invalid_request_error",
        "rate_limit_error",
        "insufficient_quota",
        "server_error",
    )
    return f"{error['type']}: {error['message']}"


def _chat_told(message: Json) -> Told:
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return Told(
        "stopped" if message["finish_reason"] in ("length", "content_filter") else "answer",
        message.get("content") or "",
        [(one["name"], json.loads(one["arguments"])) for one in functions],
    )


class Responses(Tongue):
    def __init__(self) -> None:
        super().__init__(gateway_tool_clients.Responses())

    def ask(self, model: str, *, stream: bool) -> Ask:
        return Ask("/v1/responses", {**self.body(model, stream=stream), "store": False})

    def refusal(self, heard: Heard) -> str:
        return _openai_error(json.loads(heard.body))

    def whole(self, answer: Json) -> Told:
        assert check.responses_object_problems(answer) == []
        return _responses_told(answer)

    def stream(self, heard: Heard) -> Told:
        decoder = SseDecoder()
        raw = decoder.feed(heard.body if heard.whole else events_before(heard.body)) + decoder.close()
        events = [{"event": event.event, "data": json.loads(event.data)} for event in raw]
        ended = events[-1]["data"]["type"] in _LAST_OF_RESPONSES if events else False
        response, problems = check.assemble_responses(events)
        if ended:
            assert problems == []
            return _responses_told(response)
        assert not heard.whole, "no last event"
        data = [event["data"] for event in events]
        calls = [one["item"] for one in data if one["type"] == "response.output_item.done"]
        words = [one["delta"] for one in data if one["type"] == "response.output_text.delta"]
        told = _responses_told({"status": "", "output": calls})
        return msgspec.structs.replace(told, end="cut", text="".join(words))


_LAST_OF_RESPONSES = ("response.completed", "response.incomplete", "response.failed")


def _responses_told(response: Json) -> Told:
    ends: dict[str, End] = {"completed": "answer", "incomplete": "stopped", "failed": "error"}
    output = response["output"]
    error = response.get("error") or {}
    assert ("message" in error) == (response["status"] == "failed")
    content = [part for item in output if item["type"] == "message" for part in item["content"]]
    return Told(
        ends.get(response["status"], "cut"),
        "".join(part.get("text", "") for part in content),
        [(item["name"], json.loads(item["arguments"])) for item in output if item["type"] == "function_call"],
        why=f"{error['code']}: {error['message']}" if error else "",
    )


class KeptResponses(Responses):
    """The gateway remembers what was said before."""

    def ask(self, model: str, *, stream: bool) -> Ask:
        body = {**self.body(model, stream=stream), "conversation": model}
        return Ask("/v1/responses", body)

    def hear(self, heard: Heard, *, stream: bool) -> Seen:
        seen = super().hear(heard, stream=stream)
        self.speaker.history.clear()
        return seen


class Gemini(Tongue):
    framing = "sse"

    def __init__(self) -> None:
        super().__init__(gateway_tool_clients.Gemini())

    def ask(self, model: str, *, stream: bool) -> Ask:
        method = f"streamGenerateContent?alt={self.framing}" if stream else "generateContent"
        body = self.speaker.body([TOOL], stream=stream)
        return Ask(f"/v1beta/models/{model}:{method}", body)

    def refusal(self, heard: Heard) -> str:
        return _google_error(json.loads(heard.body))

    def whole(self, answer: Json) -> Told:
        return judge_gemini([answer], whole=True)

    def stream(self, heard: Heard) -> Told:
        data = heard.body if heard.whole else events_before(heard.body, b"\r\n\r\n")
        decoder = SseDecoder()
        events = decoder.feed(data) + decoder.close()
        return judge_gemini([json.loads(event.data) for event in events], whole=heard.whole)


class GeminiArray(Gemini):
    forms = (True,)
    framing = "json"

    def refusal(self, heard: Heard) -> str:
        (only,) = json.loads(heard.body)
        return _google_error(only)

    def stream(self, heard: Heard) -> Told:
        if heard.whole:
            return judge_gemini(json.loads(heard.body), whole=True)
        data = events_before(heard.body, b",\r\n").removesuffix(b",\r\n")
        return judge_gemini(json.loads(data + b"]") if data else [], whole=False)

    def hear(self, heard: Heard, *, stream: bool) -> Seen:
        frames = (b"data: %b\r\n\r\n" % json.dumps(one).encode() for one in json.loads(heard.body))
        return self.speaker.hear(b"".join(frames), stream=True, keeps_thinking=True)


class KeptGemini(Gemini):
    """`/v1/gemini`: the gateway remembers what was said before."""

    def ask(self, model: str, *, stream: bool) -> Ask:
        body = self.speaker.body([TOOL], stream=stream)
        asked = {"model": model, "conversation": model, "stream": stream, "input": body["contents"]}
        return Ask("/v1/gemini", {**asked, "tools": body["tools"]})

    def hear(self, heard: Heard, *, stream: bool) -> Seen:
        seen = super().hear(heard, stream=stream)
        self.speaker.history.clear()
        return seen


def judge_gemini(chunks: list[Json], *, whole: bool) -> Told:
    """Chunks that Google's own types take; the last one has the finish reason, or is the error."""
    error = _google_error(chunks.pop()) if chunks and "error" in chunks[-1] else ""
    for one in chunks:
        genai.GenerateContentResponse.model_validate(one)
    candidates = [candidate for one in chunks for candidate in one.get("candidates", ())]
    reasons = [candidate["finishReason"] for candidate in candidates if "finishReason" in candidate]
    blocked = any("blockReason" in one.get("promptFeedback", {}) for one in chunks)
    assert len(reasons) <= 1
    assert not reasons or "finishReason" in candidates[-1]
    assert not (error and reasons), "an error behind the finish reason"
    parts = [part for candidate in candidates for part in candidate.get("content", {}).get("parts", ())]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    end = _end(good=bool(reasons) or blocked, whole=whole, error=error)
    stopped = end == "answer" and reasons != ["STOP"]
    return Told(
        "stopped" if stopped else end,
        "".join(part.get("text", "") for part in parts if not part.get("thought")),
        [(call["name"], call["args"]) for call in calls],
        why=error,
    )


def _google_error(body: Json) -> str:
    error = body["error"]
    assert isinstance(error["code"], int)
    assert error["message"]
    assert error["status"]
    return f"{error['status']}: {error['message']}"


class QSpeaker:
    """Amazon Q's conversation: tools on the current message, everything else in the history."""

    dialect: Any = None

    def __init__(self) -> None:
        self.history: list[Json] = []

    def body(self, tools: Iterable[str], *, stream: bool) -> Json:
        *history, current = self.history
        message = current["userInputMessage"]
        declared = [q.tool(name, gateway_tool_clients.SCHEMA) for name in tools]
        context = {**message.get("userInputMessageContext", {}), "tools": declared}
        asked = {"userInputMessage": {**message, "userInputMessageContext": context}}
        return {"conversationState": {"conversationId": "c-1", "history": history, "currentMessage": asked}}

    def say(self, words: str) -> None:
        self.history.append(q.user(words))

    def answer(self, results: list[tuple[Call, str]]) -> None:
        given = (q.result({"text": said}, identity=call.id, status="success") for call, said in results)
        self.history.append(q.results(*given))

    def hear(self, data: bytes, *, stream: bool, keeps_thinking: bool) -> Seen:
        reading = read_q(frames_before(data))
        uses = [q.use(tool.id, tool.name, input=tool.input) for tool in reading.tools]
        self.history.append(q.assistant(reading.text, *uses))
        calls = [Call(tool.id, tool.name, tool.input) for tool in reading.tools]
        return Seen(text=reading.text, calls=calls, finish=reading.stop_reason, tokens=(0, 0))


def frames_before(data: bytes) -> list[EventMessage]:
    """Whole frames; half a one at the end is nobody's."""
    return EventStreamDecoder().feed(data)


def read_q(frames: list[EventMessage], *, closed: bool = True) -> Any:
    client = RustCli()
    for frame in frames:
        client.feed(frame)
    return client.close() if closed else client.reading


class AmazonQ(Tongue):
    forms = (True,)

    def __init__(self) -> None:
        super().__init__(QSpeaker())

    def ask(self, model: str, *, stream: bool) -> Ask:
        body = self.speaker.body([TOOL], stream=stream)
        body["conversationState"]["currentMessage"]["userInputMessage"]["modelId"] = model
        target = "AmazonCodeWhispererStreamingService.GenerateAssistantResponse"
        headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": target}
        return Ask("/", body, headers)

    def refusal(self, heard: Heard) -> str:
        return _amazon_error(heard)

    def stream(self, heard: Heard) -> Told:
        if heard.whole:
            decoder = EventStreamDecoder()
            frames = decoder.feed(heard.body)
            decoder.close()
        else:
            frames = frames_before(heard.body)
        reading = read_q(frames, closed=heard.whole)
        if reading.failure:
            return Told("error", reading.text, reading.calls, why=reading.complaint["message"])
        if not reading.stop_reason:
            return Told("cut", reading.text, reading.calls)
        if reading.stop_reason in ("END_TURN", "TOOL_USE"):
            return Told("answer", reading.text, reading.calls)
        explained = reading.text.startswith("(")  # why it says nothing
        return Told("stopped", "" if explained else reading.text, reading.calls, why=reading.stop_reason)


def _amazon_error(heard: Heard) -> str:
    body = json.loads(heard.body)
    assert heard.headers["x-amzn-errortype"].endswith("Exception")
    assert body["message"]
    return f"{heard.headers['x-amzn-errortype']}: {body['message']}"


class Converse(Tongue):
    def __init__(self) -> None:
        super().__init__(gateway_tool_clients.Bedrock())

    def ask(self, model: str, *, stream: bool) -> Ask:
        body = self.speaker.body([TOOL], stream=stream)
        return Ask(f"/model/{model}/converse{'-stream' if stream else ''}", body)

    def refusal(self, heard: Heard) -> str:
        return _amazon_error(heard)

    def whole(self, answer: Json) -> Told:
        return _converse_told(answer)

    def stream(self, heard: Heard) -> Told:
        reader = Reader()
        for frame in frames_before(heard.body):
            reader.read(frame)
        told = reader.close() if heard.whole else reader.told
        if not heard.whole and reader._state == "block":  # that nobody has closed
            told.content[-1].setdefault("text", "".join(reader._pieces))
        name, payload = told.failure or ("", {})
        found = _converse_told({"stopReason": "", **told.as_whole()})
        end: End = "error" if name else found.end if told.metadata else "cut"
        return msgspec.structs.replace(found, end=end, why=f"{name}: {payload.get('message')}")


def _converse_told(answer: Json) -> Told:
    content = answer["output"]["message"]["content"]
    uses = [block["toolUse"] for block in content if "toolUse" in block]
    return Told(
        "answer" if answer["stopReason"] in ("end_turn", "tool_use") else "stopped",
        "".join(block.get("text", "") for block in content),
        [(use["name"], use["input"]) for use in uses if "input" in use],
    )


class Invoke(Anthropic):
    """The Messages API in Bedrock's wrapper."""

    def ask(self, model: str, *, stream: bool) -> Ask:
        body = self.speaker.body([TOOL], stream=stream)
        del body["model"], body["stream"]
        method = "invoke-with-response-stream" if stream else "invoke"
        return Ask(f"/model/{model}/{method}", {**body, "anthropic_version": "bedrock-2023-05-31"})

    def refusal(self, heard: Heard) -> str:
        return _amazon_error(heard)

    def stream(self, heard: Heard) -> Told:
        frames = frames_before(heard.body)
        failed = [frame for frame in frames if frame.headers[":message-type"] == "exception"]
        assert failed in ([], frames[-1:]), "nothing comes behind an exception"
        told = judge_messages(_unwrapped(frames), whole=heard.whole)
        assert (told.end == "error") == bool(failed), "a failure is told twice"
        return told

    def hear(self, heard: Heard, *, stream: bool) -> Seen:
        if not stream:
            return super().hear(heard, stream=False)
        events = _unwrapped(frames_before(heard.body))
        lines = (
            b"event: %b\ndata: %b\n\n" % (event["event"].encode(), json.dumps(event["data"]).encode())
            for event in events
        )
        return self.speaker.hear(b"".join(lines), stream=True, keeps_thinking=True)


def _unwrapped(frames: list[EventMessage]) -> list[Json]:
    chunks = [json.loads(frame.payload) for frame in frames if frame.headers[":message-type"] == "event"]
    said = [json.loads(base64.b64decode(chunk["bytes"])) for chunk in chunks]
    return [{"event": event["type"], "data": event} for event in said]


TONGUES: dict[str, type[Any]] = {
    "anthropic": Anthropic,
    "chat": Chat,
    "responses": Responses,
    "responses, kept": KeptResponses,
    "gemini": Gemini,
    "gemini array": GeminiArray,
    "gemini, kept": KeptGemini,
    "amazon q": AmazonQ,
    "converse": Converse,
    "invoke": Invoke,
}
