"""Answers of Google's, named for the situation, with the events they mean; and answers that mean nothing."""

from __future__ import annotations

from typing import Any

from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    ON_THOUGHT,
    Event,
    Finished,
    Native,
    Signature,
    SignatureDelta,
    Started,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
)
from tests.unit.dialects.gemini.builders import NEW, calling, chunk, sse

STARTED = Started(NEW, "r1")
FIRST, SECOND, THIRD = (f"toolu_{number:016d}" for number in (1, 2, 3))


def signed(data: str) -> Signature:
    return Signature(data, "gemini-g3")


def called(
    identity: str, args: bytes = b"{}", name: str = "read", signature: str | None = None
) -> list[Event]:
    return [ToolCall(id=identity, name=name, args=args, signature=signed(signature) if signature else None)]


def end(reason: Any = "end", raw: str = "STOP", detail: str = "") -> Finished:
    return Finished(reason=reason, raw=raw, detail=detail)


SITUATIONS: dict[str, tuple[list[Any], list[Event]]] = {
    "text": (
        [chunk({"text": "a"}), chunk({"text": "b"}, finish="STOP")],
        [TextDelta("a"), TextDelta("b"), end()],
    ),
    "a2 text signed at the end": (
        [chunk({"text": "a"}), chunk({"text": "", "thoughtSignature": "s"}, finish="STOP")],
        [TextDelta("a"), SignatureDelta(signed("s"), AFTER_TEXT), end()],
    ),
    "a2 text signed on itself": (
        [chunk({"text": "a", "thoughtSignature": "s"}, finish="STOP")],
        [TextDelta("a"), SignatureDelta(signed("s"), ON_TEXT), end()],
    ),
    "a2 thoughts, signed": (
        [
            chunk({"text": "t", "thought": True}),
            chunk({"text": "", "thought": True, "thoughtSignature": "s"}, {"text": "a"}, finish="STOP"),
        ],
        [ThoughtDelta("t"), SignatureDelta(signed("s"), ON_THOUGHT), TextDelta("a"), end()],
    ),
    "e1 an empty text between thoughts": (
        [
            chunk({"text": "t", "thought": True}),
            chunk({"text": ""}),
            chunk({"text": "u", "thought": True}),
            chunk(finish="STOP"),
        ],
        [ThoughtDelta("t"), ThoughtDelta("u"), end()],
    ),
    "e11 thoughts after text": (
        [chunk({"text": "a"}), chunk({"text": "t", "thought": True}, finish="STOP")],
        [TextDelta("a"), ThoughtDelta("t"), end()],
    ),
    "a13 e3 parallel calls, one per chunk, the first signed": (
        [
            chunk(calling(id="aa", args={"path": "x"}, signature="s")),
            chunk(calling(id="bb", args={"path": "y"})),
            chunk({"text": ""}, finish="STOP"),
        ],
        [
            *called(f"{FIRST}-aa", b'{"path": "x"}', signature="s"),
            *called(f"{SECOND}-bb", b'{"path": "y"}'),
            end("tool_calls"),
        ],
    ),
    "2.5: call and finish in one chunk, no id": (
        [chunk(calling(args={"path": "x"}), calling(args={}), finish="STOP")],
        [*called(FIRST, b'{"path": "x"}'), *called(SECOND), end("tool_calls")],
    ),
    "no arguments": ([chunk(calling(), finish="STOP")], [*called(FIRST), end("tool_calls")]),
    "null arguments": ([chunk(calling(args=None), finish="STOP")], [*called(FIRST), end("tool_calls")]),
    "c7 an id that is not plain": (
        [chunk(calling(id="a/b c"), finish="STOP")],
        [*called(FIRST), end("tool_calls")],
    ),
    "p4 an invented prefix": (
        [chunk(calling("default_api.read"), finish="STOP")],
        [*called(FIRST), end("tool_calls")],
    ),
    "p4 a tool nobody declared": (
        [chunk(calling("nothing"), finish="STOP")],
        [*called(FIRST, name="nothing"), end("tool_calls")],
    ),
    "d3 the finish comes before the call": (
        [chunk({"text": "a"}, finish="STOP"), chunk(calling())],
        [TextDelta("a"), *called(FIRST), end("tool_calls")],
    ),
    "d4 a call before the limit": (
        [chunk(calling()), chunk(finish="MAX_TOKENS")],
        [*called(FIRST), end("max_tokens", "MAX_TOKENS")],
    ),
    "d1 a malformed call": (
        [
            {
                "candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(x)"}],
                "modelVersion": NEW,
                "responseId": "r1",
            }
        ],
        [end("malformed", "MALFORMED_FUNCTION_CALL", "print(x)")],
    ),
    "d5 content without parts": (
        [chunk(finish="STOP", candidates=[{"content": {}, "finishReason": "STOP"}])],
        [end()],
    ),
    "d5 candidate without content": (
        [{"candidates": [{"finishReason": "STOP"}], "modelVersion": NEW, "responseId": "r1"}],
        [end()],
    ),
    "d7 a blocked prompt": (
        [{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "modelVersion": NEW, "responseId": "r1"}],
        [
            Native(json=b'{"blockReason":"PROHIBITED_CONTENT"}', field="promptFeedback"),
            end("blocked", "PROHIBITED_CONTENT", "the prompt was blocked: PROHIBITED_CONTENT"),
        ],
    ),
    "d7 a blocked prompt for reasons of its own": (
        [
            {
                "promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "because"},
                "modelVersion": NEW,
                "responseId": "r1",
            }
        ],
        [
            Native(json=b'{"blockReason":"OTHER","blockReasonMessage":"because"}', field="promptFeedback"),
            end("blocked", "OTHER", "because"),
        ],
    ),
    "d7 a blocked answer": (
        [chunk({"text": "a"}), chunk(finish="SAFETY")],
        [TextDelta("a"), end("blocked", "SAFETY")],
    ),
    "feedback without a block": (
        [chunk({"text": "a"}, finish="STOP", promptFeedback={"safetyRatings": []})],
        [TextDelta("a"), end()],
    ),
    "a reason of the future": ([chunk({"text": "a"}, finish="NEW")], [TextDelta("a"), end("other", "NEW")]),
    "unspecified is not yet the end": (
        [chunk({"text": "a"}, finish="FINISH_REASON_UNSPECIFIED"), chunk(finish="STOP")],
        [TextDelta("a"), end()],
    ),
    "only the first candidate counts": (
        [
            chunk(
                candidates=[
                    {"index": 1, "content": {"parts": [{"text": "no"}]}},
                    {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"},
                ]
            )
        ],
        [TextDelta("a"), end()],
    ),
    "nulls are absent": (
        [
            {
                "candidates": [
                    {
                        "content": {
                            "parts": [
                                {"text": "a", "thought": None, "thoughtSignature": None, "functionCall": None}
                            ]
                        },
                        "finishReason": None,
                        "index": None,
                    }
                ],
                "promptFeedback": None,
                "usageMetadata": None,
                "modelVersion": NEW,
                "responseId": "r1",
                "error": None,
            },
            chunk(finish="STOP", error=None),
            {"candidates": None},
        ],
        [TextDelta("a"), end()],
    ),
    "what only gemini says is told as it is, what nobody knows is passed over": (
        [
            chunk(
                {"executableCode": {"code": "x"}},
                {"inlineData": {"mimeType": "image/png", "data": "eA=="}, "thoughtSignature": "s"},
                {"newPart": {}},
                {"text": "a"},
                finish="STOP",
                modelStatus={"x": [1]},
                createTime="now",
            ),
            {"candidates": [{"groundingMetadata": {"webSearchQueries": ["q"]}}]},
        ],
        [
            Native(json=b'{"executableCode":{"code":"x"}}'),
            Native(json=b'{"inlineData":{"mimeType":"image/png","data":"eA=="},"thoughtSignature":"s"}'),
            TextDelta("a"),
            Native(json=b'{"webSearchQueries":["q"]}', field="groundingMetadata"),
            end(),
        ],
    ),
    "h5 h6 usage: cached inside, thoughts added, tool use on the prompt side": (
        [
            chunk({"text": "a"}, usage={"promptTokenCount": 10, "totalTokenCount": 10}),
            chunk(
                finish="STOP",
                usage={
                    "promptTokenCount": 10,
                    "cachedContentTokenCount": 4,
                    "candidatesTokenCount": 3,
                    "thoughtsTokenCount": 20,
                    "toolUsePromptTokenCount": 5,
                    "totalTokenCount": 38,
                },
            ),
        ],
        [
            TextDelta("a"),
            Native(
                json=b'{"promptTokenCount":10,"totalTokenCount":38,"cachedContentTokenCount":4,'
                b'"candidatesTokenCount":3,"thoughtsTokenCount":20,"toolUsePromptTokenCount":5}',
                field="usageMetadata",
            ),
            Usage(input_tokens=15, cached_tokens=4, output_tokens=23, thought_tokens=20),
            end(),
        ],
    ),
    "vertex: no numbers until the last chunk": (
        [
            chunk({"text": "a"}, usage={"trafficType": "ON_DEMAND"}),
            chunk(
                finish="STOP",
                usage={"promptTokenCount": "7", "candidatesTokenCount": 1, "trafficType": "ON_DEMAND"},
            ),
        ],
        [
            TextDelta("a"),
            Native(
                json=b'{"trafficType":"ON_DEMAND","promptTokenCount":"7","candidatesTokenCount":1}',
                field="usageMetadata",
            ),
            Usage(input_tokens=7, output_tokens=1),
            end(),
        ],
    ),
    "h5 counts that come apart are kept together": (
        [
            chunk({"text": "a"}, usage={"promptTokenCount": 10}),
            chunk(finish="STOP", usage={"candidatesTokenCount": 3, "thoughtsTokenCount": 0}),
        ],
        [TextDelta("a"), Usage(input_tokens=10, output_tokens=3), end()],
    ),
    "usage behind the finish": (
        [chunk({"text": "a"}, finish="STOP"), {"usageMetadata": {"promptTokenCount": 1}}],
        [TextDelta("a"), Usage(input_tokens=1), end()],
    ),
    "e10 streamed arguments, the signature first": (
        [
            chunk(calling(id="aa", willContinue=True, signature="s")),
            chunk(
                calling(
                    None,
                    partialArgs=[{"jsonPath": "$.path", "stringValue": "a", "willContinue": True}],
                    willContinue=True,
                )
            ),
            chunk(calling(None, partialArgs=[{"jsonPath": "$.path", "stringValue": "b"}], willContinue=True)),
            chunk(calling(None)),
            chunk({"text": ""}, finish="STOP"),
        ],
        [*called(f"{FIRST}-aa", b'{"path":"ab"}', signature="s"), end("tool_calls")],
    ),
    "e10 the signature comes with a later piece": (
        [chunk(calling(willContinue=True)), chunk(calling(None, signature="s")), chunk(finish="STOP")],
        [*called(FIRST, signature="s"), end("tool_calls")],
    ),
    "e10 the next call ends the one before": (
        [
            chunk(calling(partialArgs=[{"jsonPath": "$.path", "stringValue": "x"}], willContinue=True)),
            chunk(calling("other", args={"a": 1})),
            chunk(calling(None)),
            chunk(finish="STOP"),
        ],
        [*called(FIRST, b'{"path":"x"}'), *called(SECOND, b'{"a": 1}', name="other"), end("tool_calls")],
    ),
    "e10 text and usage while arguments stream": (
        [
            chunk(calling(willContinue=True), usage={"promptTokenCount": 5}),
            chunk({"text": "a"}, {"text": "t", "thought": True, "thoughtSignature": "u"}),
            chunk(calling(None, partialArgs=[{"jsonPath": "$.path", "stringValue": "x"}])),
            chunk(finish="STOP"),
        ],
        [
            TextDelta("a"),
            ThoughtDelta("t"),
            SignatureDelta(signed("u"), ON_THOUGHT),
            *called(FIRST, b'{"path":"x"}'),
            Usage(input_tokens=5),
            end("tool_calls"),
        ],
    ),
    "e10 STOP ends what is open": (
        [
            chunk(
                calling(partialArgs=[{"jsonPath": "$.path", "stringValue": "x"}], willContinue=True),
                finish="STOP",
            )
        ],
        [*called(FIRST, b'{"path":"x"}'), end("tool_calls")],
    ),
    "d4 e10 a call cut by the limit is not passed on": (
        [
            chunk({"text": "a"}),
            chunk(
                calling(partialArgs=[{"jsonPath": "$.path", "stringValue": "rm -rf /ho"}], willContinue=True)
            ),
            chunk(finish="MAX_TOKENS"),
        ],
        [TextDelta("a"), end("max_tokens", "MAX_TOKENS")],
    ),
}


WRONG = [
    b"data: x\n\n",
    b"data: {\n\n",
    b"data: null\n\n",
    b"data: 5\n\n",
    b'data: "text"\n\n',
    b"data: []\n\n",
    b'data: {"candidates":[{"content":{"parts":[{"text":"cut',
    b'data: {"candidates":{}}\n\n',
    b'data: {"candidates":[null]}\n\n',
    b'data: {"candidates":[{"content":[]}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":{}}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[null]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":["x"]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"text":5}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"text":"\xff\xfe"}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"text":"\\ud800"}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"thought":"maybe"}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"thoughtSignature":[]}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":"x"}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":5}}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","id":5}}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":"{}"}}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":[1]}}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":5}}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":"\xff"}}}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"args":{"a":1}}}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"","args":{"a":1}}}]}}]}\n\n',
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","partialArgs":{}}}]}}]}\n\n',
    sse(chunk(calling(partialArgs=[{"jsonPath": f"$.a[{'9' * 5_000}]", "stringValue": "x"}]))),
    sse(chunk(calling(partialArgs=[{"jsonPath": "$" + ".a" * 50_000}], willContinue=True), finish="STOP")),
    b'data: {"candidates":[{"finishReason":5}]}\n\n',
    b'data: {"candidates":[{"index":"x"}]}\n\n',
    b'data: {"promptFeedback":"x"}\n\n',
    b'data: {"modelVersion":5}\n\n',
    b"data: " + b'{"x":' * 100_000 + b"\n\n",
    b'data: {"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n",
    b'[{"candidates":[{"content":{"parts":[{"text":"cut',
    b"[{]",
]
