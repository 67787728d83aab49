"""Read grounding and URL context metadata: queries, sources, and the text that each source supports.

Google gives positions as byte offsets into a part; citations use character offsets into the whole answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import urlsplit

import msgspec

from dragoman.ir import Citation, ServerTool, Source

#: Search results have redirect URLs on this host; the title of such a result is the domain of the page.
_REDIRECTS = "vertexaisearch.cloud.google.com"
_MAX_SUPPORTS = 1_000
_MAX_PARTS = 64  # parts tried as the base of an offset; later segments are found by their text
_CONTINUES = 0x80  # a UTF-8 continuation byte


class Chunk(msgspec.Struct, rename="camel"):
    """One source: a web page, a retrieved document or a place."""

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
    """A range of bytes in the text of a part.

    Google omits zeros, and it also omits `partIndex` where it is not 0 (genai#961).
    """

    part_index: int | None = None
    start_index: int | None = None
    end_index: int | None = None
    text: str | None = None


class Support(msgspec.Struct, rename="camel"):
    segment: Segment | None = None
    grounding_chunk_indices: list[int] | None = None


class Grounding(msgspec.Struct, rename="camel"):
    """`groundingMetadata`.

    Several chunks of a stream may have it; each list is complete in the last chunk that has it.
    """

    web_search_queries: list[str] | None = None
    grounding_chunks: list[Chunks | None] | None = None
    grounding_supports: list[Support | None] | None = None

    def merge(self, later: Grounding) -> Grounding:
        """Return the metadata with every list of `later` that is not empty."""
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
    """The client's domain filter; subdomains match too, and `blocked` overrides `allowed`."""

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    def admit(self, site: str) -> bool:
        if any(_is_within(site, blocked) for blocked in self.blocked):
            return False
        return not self.allowed or any(_is_within(site, allowed) for allowed in self.allowed)


def sites_of(tool: ServerTool) -> Sites:
    return Sites(bare_sites(tool.allowed_domains), bare_sites(tool.blocked_domains))


def bare_sites(sites: Iterable[str]) -> tuple[str, ...]:
    """Return the sites without duplicates, as bare host names, which is the form Google uses."""
    return tuple(dict.fromkeys(bare for site in sites if (bare := _bare(site))))


def admits(tool: ServerTool, url: str) -> bool:
    """Whether the tool's domain filter allows this URL."""
    return sites_of(tool).admit(site_of(url))


def read_sources(grounding: Grounding, admits: Callable[[str], bool]) -> tuple[list[Source | None], int]:
    """Return the sources in Google's order, and the number of sources that `admits` rejects.

    A source that is rejected or has no address is None, so that Google's indices stay valid.
    """
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
    """Return the host of a URL without `www`; an empty string if it is not a URL."""
    try:
        return _bare(urlsplit(url).hostname or "")
    except ValueError:
        return ""


def place_citations(
    text: str, runs: Sequence[int], grounding: Grounding, sources: Sequence[Source | None]
) -> list[Citation]:
    """Return the citations of the whole text: in character offsets, sorted, without overlaps.

    `runs` are the byte offsets at which the parts of the text begin. A segment that is not found in the text is
    skipped.
    """
    data = text.encode()
    spans: list[tuple[int, int, tuple[Source, ...]]] = []
    for support in (grounding.grounding_supports or ())[:_MAX_SUPPORTS]:
        if support is None or support.segment is None:
            continue
        found = _cited_sources(support.grounding_chunk_indices or (), sources)
        span = _locate(data, runs, support.segment) if found else None
        if span is not None:
            spans.append((*span, found))
    return _in_characters(
        data, _with_whitespace(data, _without_overlaps(sorted(spans, key=lambda span: span[:2])))
    )


def _cited_sources(indices: Iterable[int], sources: Sequence[Source | None]) -> tuple[Source, ...]:
    found = (sources[index] for index in indices if 0 <= index < len(sources))
    return tuple(dict.fromkeys(source for source in found if source is not None))


def _locate(data: bytes, runs: Sequence[int], segment: Segment) -> tuple[int, int] | None:
    """Return the byte range of a segment.

    Its text is compared at the given offset of each part, because `partIndex` is unreliable, and then searched
    for anywhere. Without a text the offsets are trusted.
    """
    start, end = max(segment.start_index or 0, 0), segment.end_index or 0
    expected = (segment.text or "").encode()
    if not expected:
        base = runs[min(segment.part_index or 0, len(runs) - 1)]
        span = (_aligned(data, base + start), _aligned(data, base + end))
        return span if span[0] < span[1] else None
    for base in dict.fromkeys((0, *runs[:_MAX_PARTS])):
        if data.startswith(expected, base + start):
            return base + start, base + start + len(expected)
    at = data.find(expected)
    return (at, at + len(expected)) if at >= 0 else None


def _aligned(data: bytes, index: int) -> int:
    """Return the start of the UTF-8 character that contains the byte at `index`."""
    index = min(max(index, 0), len(data))
    while 0 < index < len(data) and data[index] & 0xC0 == _CONTINUES:
        index -= 1
    return index


def _without_overlaps(
    spans: Iterable[tuple[int, int, tuple[Source, ...]]],
) -> list[tuple[int, int, tuple[Source, ...]]]:
    """Remove overlaps from sorted spans.

    A span inside another adds its sources to it; one that extends past another begins at its end.
    """
    separate: list[tuple[int, int, tuple[Source, ...]]] = []
    for start, end, sources in spans:
        if not separate or start >= separate[-1][1]:
            separate.append((start, end, sources))
        elif end > separate[-1][1]:
            separate.append((separate[-1][1], end, sources))
        else:
            first, last, known = separate[-1]
            separate[-1] = (first, last, tuple(dict.fromkeys(known + sources)))
    return separate


def _with_whitespace(
    data: bytes, spans: list[tuple[int, int, tuple[Source, ...]]]
) -> Iterator[tuple[int, int, tuple[Source, ...]]]:
    """Extend spans over the white space around them: some clients reject a text that is only white space."""
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
    """Return a site without scheme, path, wildcard and `www`."""
    host = site.strip().lower().rpartition("://")[2].partition("/")[0]
    return host.removeprefix("*").lstrip(".").removeprefix("www.")


def _is_within(site: str, above: str) -> bool:
    return site == above or site.endswith(f".{above}")
