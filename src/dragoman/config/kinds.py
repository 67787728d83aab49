"""Annotated types that several sections of the settings share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

KIB = 1024
MIB = 1024 * 1024

Port = Annotated[int, Meta(ge=0, le=65535)]  # 0: any free one
Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0, le=86400)]
Wait = Annotated[float, Meta(ge=0, le=86400)]
Name = Annotated[str, Meta(min_length=1)]
