"""Parse environment values into the type of a setting, and describe such types for error messages."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

_BOOLEAN_WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


def parse_text(text: str, wanted: Any) -> object:
    """Parse a value; lists are comma-separated, tables are `name=value,name=value` or JSON.

    Raise `ValueError` if the text does not fit the type.
    """
    match inspect.type_info(wanted):
        case inspect.BoolType():
            if text.lower() not in _BOOLEAN_WORDS:
                raise ValueError(text)
            return _BOOLEAN_WORDS[text.lower()]
        case inspect.VarTupleType():
            value: object = tuple(part.strip() for part in text.split(",") if part.strip())
        case inspect.DictType(value_type=inspect.StructType() | inspect.VarTupleType()):
            table: object = msgspec.json.decode(text, type=wanted)
            return table
        case inspect.DictType():
            pairs = (part.partition("=") for part in text.split(",") if part.strip())
            value = {name.strip(): word.strip() for name, _, word in pairs}
        case _:
            value = text
    return msgspec.convert(value, wanted, strict=False)


def describe_type(wanted: Any) -> str:
    match inspect.type_info(wanted):
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() | inspect.FloatType() as number:
            return _describe_number(number)
        case inspect.LiteralType(values=words):
            return "one of " + ", ".join(map(str, words))
        case inspect.VarTupleType():
            return "a list of texts"
        case inspect.DictType(value_type=inspect.StructType(cls=entry)):
            return f"a table of names, each with a table of {', '.join(entry.__struct_fields__)}"
        case inspect.DictType(value_type=inspect.VarTupleType()):
            return "a table of names, each with a list of models"
        case inspect.DictType():
            return "a table of names and models"
        case inspect.StrType(min_length=1):
            return "a text that is not empty"
        case _:
            return "a text"


def _describe_number(number: inspect.IntType | inspect.FloatType) -> str:
    noun = "a whole number" if isinstance(number, inspect.IntType) else "a number"
    if number.gt is not None:
        noun += f" above {number.gt}"
    if number.ge is not None:
        noun += f" of at least {number.ge}"
    if number.le is not None:
        noun += f" and at most {number.le}"
    return noun
