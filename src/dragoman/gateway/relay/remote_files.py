"""Inlining of remote files: replace the URLs in a request with the files, if `media.fetch` is set.

Otherwise nothing is fetched and Google gets the URLs.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import msgspec

from dragoman.config import MediaConfig
from dragoman.errors import InvalidRequest
from dragoman.incremental.lru import LruCache
from dragoman.ir import Media, Message, Part, Text, ToolResult
from dragoman.notes import Note
from dragoman.translation.exchange import Exchange
from dragoman.upstream.remote_files import FetchedFile, FetchError, FileFetcher

_MAX_CONCURRENT_FETCHES = 4
_CACHE_BYTES = 64 * 1024 * 1024  # clients send the same URL again with every turn
#: Hosts whose URLs Google reads itself: uploaded files and videos.
_GOOGLE_HOSTS = ("generativelanguage.googleapis.com", "youtube.com", "youtu.be")


class RemoteFileInliner:
    """Fetch and cache remote files. Cached files are not shared between callers."""

    def __init__(self, settings: MediaConfig, fetcher: FileFetcher | None = None) -> None:
        self._settings = settings
        self._fetcher = fetcher
        self._cache: LruCache[tuple[str, str], FetchedFile] = LruCache(_CACHE_BYTES)

    async def inline(self, exchange: Exchange, scope: str) -> None:
        """Replace the remote files in a request with their content.

        Raise InvalidRequest if a file in the newest message cannot be fetched. In older messages such a file
        is replaced by a text, so that a dead URL does not end the conversation.
        """
        if not self._settings.fetch:
            return
        messages = exchange.request.messages
        uris = list(dict.fromkeys(media.uri for message in messages for media in _remote_media(message)))
        if not uris:
            return
        if len(uris) > self._settings.max_files:
            raise InvalidRequest(f"at most {self._settings.max_files} files are fetched for one request")
        fetched = await self._fetch_all(uris, scope)
        _check_newest(messages[-1], fetched)
        notes = [
            Note("dropped", "messages", f"the file at {_host(uri)}: {error.message}")
            for uri, error in fetched.items()
            if isinstance(error, FetchError)
        ]
        exchange.replace_messages(tuple(_with_files(message, fetched) for message in messages), tuple(notes))

    async def _fetch_all(self, uris: list[str], scope: str) -> dict[str, Media | FetchError]:
        semaphore = asyncio.Semaphore(_MAX_CONCURRENT_FETCHES)
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_s
        bytes_left = self._settings.max_bytes
        fetcher = self._fetcher = self._fetcher or _open_fetcher(self._settings)

        async def fetch_one(uri: str) -> Media | FetchError:
            nonlocal bytes_left
            try:
                async with asyncio.timeout_at(deadline), semaphore:
                    file = self._cache.find((scope, uri)) or await fetcher.fetch(uri)
            except TimeoutError:
                return FetchError("it could not be fetched")
            except FetchError as error:
                return error
            self._cache.put((scope, uri), len(file.data), file)
            bytes_left -= len(file.data)
            if bytes_left < 0:
                return FetchError(f"all files together are larger than {self._settings.max_bytes} bytes")
            return Media(mime=file.mime, data=base64.b64encode(file.data).decode())

        return dict(zip(uris, await asyncio.gather(*map(fetch_one, uris)), strict=True))


def _open_fetcher(settings: MediaConfig) -> FileFetcher:
    return FileFetcher(max_bytes=settings.max_bytes, timeout_s=settings.timeout_s)


def _remote_media(message: Message) -> Iterator[Media]:
    for part in message.parts:
        content = part.content if isinstance(part, ToolResult) else (part,)
        yield from (item for item in content if isinstance(item, Media) and _is_remote(item.uri))


def _is_remote(uri: str) -> bool:
    if not uri.lower().startswith(("http://", "https://")):
        return False
    host = _host(uri)
    return not any(host == name or host.endswith(f".{name}") for name in _GOOGLE_HOSTS)


def _host(uri: str) -> str:
    try:
        return (urlsplit(uri).hostname or "").lower()
    except ValueError:
        return ""


def _check_newest(message: Message, fetched: Mapping[str, Media | FetchError]) -> None:
    for media in _remote_media(message):
        error = fetched[media.uri]
        if isinstance(error, FetchError):
            raise InvalidRequest(f"the file at {_host(media.uri)} cannot be used: {error.message}")


def _with_files(message: Message, fetched: Mapping[str, Media | FetchError]) -> Message:
    if not any(_remote_media(message)):
        return message
    return msgspec.structs.replace(
        message, parts=tuple(_inline_part(part, fetched) for part in message.parts)
    )


def _inline_part(part: Part, fetched: Mapping[str, Media | FetchError]) -> Part:
    if isinstance(part, ToolResult):
        return msgspec.structs.replace(
            part, content=tuple(_inline_file(item, fetched) for item in part.content)
        )
    return _inline_file(part, fetched) if isinstance(part, Media) else part


def _inline_file(part: Text | Media, fetched: Mapping[str, Media | FetchError]) -> Text | Media:
    file = fetched.get(part.uri) if isinstance(part, Media) else part
    if isinstance(file, FetchError):
        return Text(text=f"(A file was left out here: {file.message}.)")
    return file or part
