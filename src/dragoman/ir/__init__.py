"""The neutral model every dialect is translated to and from."""

from dragoman.ir.collect import Collector, collect
from dragoman.ir.events import (
    CallDelta,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    Signed,
    Started,
    StopReason,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from dragoman.ir.parts import Media, Native, Part, Text, Thought, ToolCall, ToolResult
from dragoman.ir.placing import place_signatures
from dragoman.ir.replay import replay
from dragoman.ir.request import (
    REMINDER,
    Effort,
    Message,
    OutputFormat,
    Request,
    Role,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from dragoman.ir.response import Response
from dragoman.ir.signature import AFTER_TEXT, AS_BROUGHT, ON_TEXT, ON_THOUGHT, Sealed, Signature, seal, unseal

__all__ = [
    "AFTER_TEXT",
    "AS_BROUGHT",
    "ON_TEXT",
    "ON_THOUGHT",
    "REMINDER",
    "CallDelta",
    "CallEnded",
    "CallStarted",
    "Collector",
    "Effort",
    "Event",
    "Failed",
    "Finished",
    "Media",
    "Message",
    "Native",
    "OutputFormat",
    "Part",
    "Request",
    "Response",
    "Role",
    "Sampling",
    "Sealed",
    "Signature",
    "Signed",
    "Started",
    "StopReason",
    "Text",
    "TextDelta",
    "Thinking",
    "Thought",
    "ThoughtDelta",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolResult",
    "Usage",
    "collect",
    "place_signatures",
    "replay",
    "seal",
    "unseal",
]
