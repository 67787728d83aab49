"""Message types that no published table contains: counting, embedding, caches and files.

They have the notation of fields.json.
"""

from __future__ import annotations

from typing import Any

Fields = dict[str, dict[str, Any]]

_CONTENTS = {"kind": "msg:Content", "rep": True}
_STRING = {"kind": "string"}
_VALUES = {"kind": "value", "rep": True}

ENUMS = {
    "TaskType": [
        "TASK_TYPE_UNSPECIFIED",
        "RETRIEVAL_QUERY",
        "RETRIEVAL_DOCUMENT",
        "SEMANTIC_SIMILARITY",
        "CLASSIFICATION",
        "CLUSTERING",
        "QUESTION_ANSWERING",
        "FACT_VERIFICATION",
        "CODE_RETRIEVAL_QUERY",
    ]
}

_CACHED_CONTENT: Fields = {
    "name": _STRING,
    "displayName": _STRING,
    "model": _STRING,
    "contents": _CONTENTS,
    "systemInstruction": {"kind": "msg:Content"},
    "tools": {"kind": "msg:Tool", "rep": True},
    "toolConfig": {"kind": "msg:ToolConfig"},
    "ttl": {"kind": "duration", "oneof": "expiration"},
    "expireTime": {"kind": "timestamp", "oneof": "expiration"},
    "createTime": {"kind": "timestamp"},
    "updateTime": {"kind": "timestamp"},
    "usageMetadata": {"kind": "struct"},
}
_EMBEDDING: Fields = {
    "taskType": {"kind": "enum:TaskType"},
    "title": _STRING,
    "outputDimensionality": {"kind": "int32"},
}

_STUDIO: dict[str, Fields] = {
    "CountTokensRequest": {
        "contents": _CONTENTS,
        "generateContentRequest": {"kind": "msg:GenerateContentRequest"},
        "model": _STRING,
    },
    "CachedContent": _CACHED_CONTENT,
    "EmbedContentRequest": {"model": _STRING, "content": {"kind": "msg:Content"}, **_EMBEDDING},
    "BatchEmbedContentsRequest": {
        "model": _STRING,
        "requests": {"kind": "msg:EmbedContentRequest", "rep": True},
    },
    "CreateFileRequest": {"file": {"kind": "msg:File"}},
    "File": {
        "name": _STRING,
        "displayName": _STRING,
        "mimeType": _STRING,
        "sizeBytes": {"kind": "int64"},
    },
}
_VERTEX: dict[str, Fields] = {
    "CountTokensRequest": {
        "contents": _CONTENTS,
        "generationConfig": {"kind": "msg:GenerationConfig"},
        "instances": _VALUES,
        "model": _STRING,
        "systemInstruction": {"kind": "msg:Content"},
        "tools": {"kind": "msg:Tool", "rep": True},
    },
    "CachedContent": {**_CACHED_CONTENT, "encryptionSpec": {"kind": "struct"}},
    "EmbedContentRequest": {
        "content": {"kind": "msg:Content"},
        "autoTruncate": {"kind": "bool"},
        "embedContentConfig": {"kind": "msg:EmbedContentConfig"},
        **_EMBEDDING,
    },
    "EmbedContentConfig": {
        "autoTruncate": {"kind": "bool"},
        "documentOcr": {"kind": "bool"},
        "audioTrackExtraction": {"kind": "bool"},
        **_EMBEDDING,
    },
    "PredictRequest": {
        "instances": _VALUES,
        "parameters": {"kind": "value"},
        "labels": {"kind": "map:string"},
    },
    "ComputeTokensRequest": {"contents": _CONTENTS, "instances": _VALUES, "model": _STRING},
}


def unpublished_messages(table: str) -> dict[str, Fields]:
    """Return the messages of one contract: `mldev` is AI Studio, every other table is Vertex."""
    return _STUDIO if table == "mldev" else _VERTEX
