"""Amazon's own SDK for Python with a function where its network would be."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config

Json = dict[str, Any]

#: A request as it would be sent -> status, headers, body.
Network = Callable[[AWSPreparedRequest], tuple[int, dict[str, str], bytes]]

SECRETS = {"aws_access_key_id": "made-up", "aws_secret_access_key": "made-up-too"}


class _Raw(io.BytesIO):
    def stream(self, amount: int = 1024, **_more: object) -> Iterator[bytes]:
        while piece := self.read(amount):
            yield piece


def offline(network: Network, service: str = "bedrock-runtime", *, attempts: int = 1) -> Any:
    """A client that signs, sends and reads as always; only nothing leaves."""
    client = boto3.client(
        service,
        region_name="us-east-1",
        endpoint_url="http://127.0.0.1:9",
        config=Config(retries={"total_max_attempts": attempts, "mode": "standard"}),
        **SECRETS,
    )

    def send(request: AWSPreparedRequest, **_more: object) -> AWSResponse:
        status, headers, body = network(request)
        return AWSResponse(request.url, status, headers, _Raw(body))

    client.meta.events.register("before-send", send)
    return client


def online(url: str, service: str = "bedrock-runtime", secrets: dict[str, str] | None = None) -> Any:
    """A client of a real gateway."""
    retries = Config(retries={"total_max_attempts": 1})
    return boto3.client(
        service, region_name="us-east-1", endpoint_url=url, config=retries, **(secrets or SECRETS)
    )


class Told:
    """What boto3 makes of bytes that somebody else has made: one client for many answers."""

    def __init__(self) -> None:
        self._answer: tuple[int, dict[str, str], bytes] = (200, {}, b"")
        self._client = offline(lambda _request: self._answer)

    def whole(self, data: bytes) -> Json:
        self._answer = 200, {"content-type": "application/json"}, data
        return dict(self._client.converse(modelId="m", messages=[]))

    def streamed(self, data: bytes) -> list[Json]:
        self._answer = 200, {"content-type": "application/vnd.amazon.eventstream"}, data
        return list(self._client.converse_stream(modelId="m", messages=[])["stream"])


def fold(events: list[Json]) -> Json:
    """The whole answer that a program puts together from a stream's events."""
    blocks: dict[int, Json] = {}
    answer: Json = {}
    for event in events:
        ((kind, payload),) = event.items()
        if kind == "contentBlockStart":
            blocks[payload["contentBlockIndex"]] = {"toolUse": {**payload["start"]["toolUse"], "input": ""}}
        elif kind == "contentBlockDelta":
            ((member, value),) = payload["delta"].items()
            block = blocks.setdefault(payload["contentBlockIndex"], {})
            if member == "text":
                block["text"] = block.get("text", "") + value
            elif member == "toolUse":
                block["toolUse"]["input"] += value["input"]
            else:
                told = block.setdefault("reasoningContent", {}).setdefault("reasoningText", {})
                for field, words in value.items():
                    told[field] = told.get(field, "") + words
        elif kind in ("messageStop", "metadata"):
            answer |= payload
    content = [blocks[index] for index in sorted(blocks)]
    return {"output": {"message": {"role": "assistant", "content": content}}, **answer}
