"""The strict offline Gemini: it refuses what Google refuses, in Google's words, and really uses tools."""

from dragoman.emulator.app import create_emulator

__all__ = ["create_emulator"]
