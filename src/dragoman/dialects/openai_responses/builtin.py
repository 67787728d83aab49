"""Tools that OpenAI defines and the client runs.

Requests name only their type, so their descriptions and schemas are here. Each has its own type of call item.
"""

from __future__ import annotations

from typing import Final

import msgspec

SEARCH: Final = "tool_search"


class BuiltIn(msgspec.Struct, frozen=True):
    item: str  # type of the output item that calls the tool
    description: str
    schema: bytes


#: The schema of custom tools, which take free text. Gemini has only functions, so the text is the one argument of a
#: function (pain G1).
INPUT_SCHEMA: Final = (
    b'{"type":"object","properties":{"input":{"type":"string","description":'
    b'"The raw text for this tool, exactly as it should arrive: no JSON and no code fence around it."}},'
    b'"required":["input"]}'
)
GRAMMAR_HINT: Final = "The argument `input` must match this grammar ({syntax}):\n{definition}"

BUILT_IN: Final[dict[str, BuiltIn]] = {
    SEARCH: BuiltIn(
        "tool_search_call",
        "Search for further tools by what they do; the ones found can be called afterwards.",
        b'{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do"},'
        b'"limit":{"type":"integer","description":"How many tools to load at most"}},"required":["query"]}',
    ),
    "local_shell": BuiltIn(
        "local_shell_call",
        "Run one command on the user's machine and read its output.",
        b'{"type":"object","properties":{'
        b'"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments"},'
        b'"working_directory":{"type":"string"},"timeout_ms":{"type":"integer"},'
        b'"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["command"]}',
    ),
    "shell": BuiltIn(
        "shell_call",
        "Run shell commands on the user's machine and read their output.",
        b'{"type":"object","properties":{'
        b'"commands":{"type":"array","items":{"type":"string"},"description":"Command lines, run one by one"},'
        b'"timeout_ms":{"type":"integer"},"max_output_length":{"type":"integer"}},"required":["commands"]}',
    ),
    "apply_patch": BuiltIn(
        "apply_patch_call",
        "Create, change or delete one file.",
        b'{"type":"object","properties":{'
        b'"type":{"type":"string","enum":["create_file","update_file","delete_file"]},'
        b'"path":{"type":"string","description":"Path of the file"},'
        b'"diff":{"type":"string","description":"The new content or the change, in V4A diff format; '
        b'not for delete_file"}},"required":["type","path"]}',
    ),
}
