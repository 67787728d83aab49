"""JSON Schema for Gemini: convert tool declarations, map tool names both ways, check and repair arguments."""

from dragoman.schema.args import PLACEHOLDER, check_args, check_args_strictly, repair_args
from dragoman.schema.clean import clean_schema, compile_schema, relax_schema
from dragoman.schema.tool_names import NameMap

__all__ = [
    "PLACEHOLDER",
    "NameMap",
    "check_args",
    "check_args_strictly",
    "clean_schema",
    "compile_schema",
    "relax_schema",
    "repair_args",
]
