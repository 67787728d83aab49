"""What an answer rests on, as Google tells it: searches, sources, and which bytes of the text they support."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import urlsplit

import msgspec

from dragoman.ir import Citation, ServerTool, Source

#: Google's addresses of what it found lead there; the page's own domain is its title then.
_REDIRECTS = "vertexaisearch.cloud.google.com"
_MAX_SUPPORTS = 1_000
_MAX_RUNS = 64  # a segment of a later part is found by its words
_CONTINUES = 0x80  # a byte inside a character


class Chunk(msgspec.Struct, rename="camel"):
    """One source: a page, or a document of the user's own."""

    uri: str | None = None
    title: str | None = None
    domain: str | None = None
    text: str | None = None


class Chunks(msgspec.Struct, rename="camel"):
    web: Chunk | None = None
    retrieved_context: Chunk | None = None
    maps: Chunk | None = None

    @property
    def chunk(self) -> Chunk:
        return self.web or self.retrieved_context or self.maps or Chunk()


class Segment(msgspec.Struct, rename="camel"):
    """Bytes of a part's text; Google leaves out zeros, and the part's index even where it is another (genai#961)."""

    part_index: int | None = None
    start_index: int | None = None
    end_index: int | None = None
    text: str | None = None


class Support(msgspec.Struct, rename="camel"):
    segment: Segment | None = None
    grounding_chunk_indices: list[int] | None = None


class Grounding(msgspec.Struct, rename="camel"):
    """Every chunk of a stream may have it; the last one that has a list has all of it."""

    web_search_queries: list[str] | None = None
    grounding_chunks: list[Chunks | None] | None = None
    grounding_supports: list[Support | None] | None = None

    def merge(self, later: Grounding) -> Grounding:
        return Grounding(
            later.web_search_queries or self.web_search_queries,
            later.grounding_chunks or self.grounding_chunks,
            later.grounding_supports or self.grounding_supports,
        )


class UrlMetadata(msgspec.Struct, rename="camel"):
    retrieved_url: str | None = None
    url_retrieval_status: str | None = None


class UrlContext(msgspec.Struct, rename="camel"):
    url_metadata: list[UrlMetadata | None] | None = None


decode_grounding = msgspec.json.Decoder(Grounding | None, strict=False).decode
decode_url_context = msgspec.json.Decoder(UrlContext | None, strict=False).decode


class Sites(msgspec.Struct, frozen=True):
    """Which sites a client wants to hear of."""

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    def admit(self, site: str) -> bool:
        if any(_is_below(site, blocked) for blocked in self.blocked):
            return False
        return not self.allowed or any(_is_below(site, allowed) for allowed in self.allowed)


def sites_of(tool: ServerTool) -> Sites:
    return Sites(bare_sites(tool.allowed_domains), bare_sites(tool.blocked_domains))


def bare_sites(sites: Iterable[str]) -> tuple[str, ...]:
    """Each once, as Google writes them."""
    return tuple(dict.fromkeys(bare for site in sites if (bare := _bare(site))))


def admits(tool: ServerTool, url: str) -> bool:
    """Whether the client wants to hear of a page at this address."""
    return sites_of(tool).admit(site_of(url))


def read_sources(grounding: Grounding, admits: Callable[[str], bool]) -> tuple[list[Source | None], int]:
    """The sources in Google's order, None for one that is nothing or not wanted, and how many were not wanted."""
    sources: list[Source | None] = []
    unwanted = 0
    for chunks in grounding.grounding_chunks or ():
        chunk = chunks.chunk if chunks is not None else Chunk()
        admitted = bool(chunk.uri) and admits(_site(chunk))
        unwanted += bool(chunk.uri) and not admitted
        title, text = chunk.title or "", chunk.text or ""
        sources.append(Source(url=chunk.uri or "", title=title, text=text) if admitted else None)
    return sources, unwanted


def site_of(url: str) -> str:
    """The site of an address; nothing of what is no address."""
    try:
        return _bare(urlsplit(url).hostname or "")
    except ValueError:
        return ""


def place_citations(
    text: str, runs: Sequence[int], grounding: Grounding, sources: Sequence[Source | None]
) -> list[Citation]:
    """Citations of the answer's whole text, in characters, in order, none over another.

    `runs` are the bytes at which the parts of the text begin. A segment that stands nowhere is left out.
    """
    data = text.encode()
    spans: list[tuple[int, int, tuple[Source, ...]]] = []
    for support in (grounding.grounding_supports or ())[:_MAX_SUPPORTS]:
        if support is None or support.segment is None:
            continue
        found = _named(support.grounding_chunk_indices or (), sources)
        span = _find(data, runs, support.segment) if found else None
        if span is not None:
            spans.append((*span, found))
    return _in_characters(data, _snug(data, _apart(sorted(spans, key=lambda span: span[:2]))))


def _named(indices: Iterable[int], sources: Sequence[Source | None]) -> tuple[Source, ...]:
    found = (sources[index] for index in indices if 0 <= index < len(sources))
    return tuple(dict.fromkeys(source for source in found if source is not None))


def _find(data: bytes, runs: Sequence[int], segment: Segment) -> tuple[int, int] | None:
    """Where a segment is: where Google says, from whichever part on, or where its words are."""
    start, end = max(segment.start_index or 0, 0), segment.end_index or 0
    words = (segment.text or "").encode()
    if not words:
        base = runs[min(segment.part_index or 0, len(runs) - 1)]
        span = (_aligned(data, base + start), _aligned(data, base + end))
        return span if span[0] < span[1] else None
    for base in dict.fromkeys((0, *runs[:_MAX_RUNS])):
        if data.startswith(words, base + start):
            return base + start, base + start + len(words)
    at = data.find(words)
    return (at, at + len(words)) if at >= 0 else None


def _aligned(data: bytes, index: int) -> int:
    index = min(max(index, 0), len(data))
    while 0 < index < len(data) and data[index] & 0xC0 == _CONTINUES:
        index -= 1
    return index


def _apart(
    spans: Iterable[tuple[int, int, tuple[Source, ...]]],
) -> list[tuple[int, int, tuple[Source, ...]]]:
    """No span over another: what lies inside one adds its sources to it, what sticks out begins behind it."""
    apart: list[tuple[int, int, tuple[Source, ...]]] = []
    for start, end, sources in spans:
        if not apart or start >= apart[-1][1]:
            apart.append((start, end, sources))
        elif end > apart[-1][1]:
            apart.append((apart[-1][1], end, sources))
        else:
            first, last, known = apart[-1]
            apart[-1] = (first, last, tuple(dict.fromkeys(known + sources)))
    return apart


def _snug(
    data: bytes, spans: list[tuple[int, int, tuple[Source, ...]]]
) -> Iterator[tuple[int, int, tuple[Source, ...]]]:
    """White space between and around spans belongs to them: some clients take no text that is nothing else."""
    for number, (start, end, sources) in enumerate(spans):
        following = spans[number + 1][0] if number + 1 < len(spans) else len(data)
        first = 0 if not number and data[:start].isspace() else start
        yield first, following if data[end:following].isspace() else end, sources


def _in_characters(data: bytes, spans: Iterable[tuple[int, int, tuple[Source, ...]]]) -> list[Citation]:
    citations: list[Citation] = []
    at = characters = 0
    for first, last, sources in spans:
        start = characters + len(data[at:first].decode())
        characters = start + len(data[first:last].decode())
        at = last
        citations.append(Citation(start=start, end=characters, sources=sources))
    return citations


def _site(chunk: Chunk) -> str:
    if chunk.domain:
        return _bare(chunk.domain)
    site = site_of(chunk.uri or "")
    return _bare(chunk.title or "") if site == _REDIRECTS else site


def _bare(site: str) -> str:
    """A site as people write it: without scheme, path, wildcard and `www`."""
    host = site.strip().lower().rpartition("://")[2].partition("/")[0]
    return host.removeprefix("*").lstrip(".").removeprefix("www.")


def _is_below(site: str, above: str) -> bool:
    return site == above or site.endswith(f".{above}")
