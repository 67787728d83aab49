"""What we let a client of HTTP/2 decide, and what not."""

from __future__ import annotations

import pytest
from h2.settings import SettingCodes
from hpack import Decoder

from dragoman.server.wire.http2_protocol import TABLE_BYTES, make_connection
from tests.unit.server.wire.test_http1 import body, start
from tests.unit.server.wire.test_http2 import guest_of, speaking


async def test_a_client_that_allows_a_large_table_of_headers_does_not_get_one() -> None:
    numbers = iter(range(1_000))

    async def app(_scope: object, _receive: object, send: object) -> None:
        await send(start(200, (b"x-number", b"%d" % next(numbers))))  # type: ignore[operator]
        await send(body(b"x"))  # type: ignore[operator]

    async with speaking(app) as (client, here):
        client.h2.update_settings({SettingCodes.HEADER_TABLE_SIZE: 2**31 - 1})
        for number in range(300):
            head, _ = await client.answer(client.ask(data=None))  # it reads every one of them
            assert head["x-number"] == str(number)
            client.events.clear()
        encoder = (await guest_of(here))._h2.encoder
        assert encoder.header_table_size == TABLE_BYTES
        assert len(encoder.header_table.dynamic_entries) <= TABLE_BYTES // 32


@pytest.mark.parametrize("sizes", [(0,), (0, 10_000), (100, 0, 2_000, 50, 9_000), (0, 4096) * 1_000])
def test_a_table_that_changes_its_size_is_told_to_its_reader_in_few_words(sizes: tuple[int, ...]) -> None:
    encoder, decoder = make_connection(8_192).encoder, Decoder()
    heads = [[(b"x-a", b"%d" % number)] for number in range(3)]
    assert decoder.decode(encoder.encode(heads[0]), raw=True) == heads[0]
    for size in sizes:
        encoder.header_table_size = size
    decoder.max_allowed_table_size = sizes[-1]
    assert len(encoder.table_size_changes) <= 2
    for head in (*heads, *heads):
        assert decoder.decode(encoder.encode(head), raw=True) == head
