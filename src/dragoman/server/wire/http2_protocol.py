"""The h2 package's protocol, with our limits and without two of its habits."""

from __future__ import annotations

from h2.config import H2Configuration
from h2.connection import ConnectionInputs, ConnectionState, H2Connection
from h2.settings import SettingCodes, Settings
from hpack import Encoder

from dragoman.server.wire.turn import UNTAKEN_BYTES

STREAMS = 128
TABLE_BYTES = 4096  # the protocol's default


class BoundedEncoder(Encoder):
    """A client may allow us a large table of headers; ours is searched line by line, so we use a small one."""

    @property
    def header_table_size(self) -> int:
        return self.header_table.maxsize

    @header_table_size.setter
    def header_table_size(self, value: int) -> None:
        size = min(value, TABLE_BYTES)
        self.header_table.maxsize = size
        if self.header_table.resized:
            changes = [*self.table_size_changes, size]
            # The smallest and the last are to be told with the next head (RFC 7541, 4.2), however many there were.
            self.table_size_changes = changes if len(changes) < 3 else [min(changes), size]


def make_connection(max_head_bytes: int) -> H2Connection:
    # Heads are checked by ourselves: h2 ends the whole connection for one header with a space behind it.
    config = H2Configuration(client_side=False, header_encoding=None, validate_inbound_headers=False)
    connection = H2Connection(config)
    connection.local_settings = Settings(
        client=False,
        initial_values={
            SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS,
            SettingCodes.INITIAL_WINDOW_SIZE: UNTAKEN_BYTES,
            SettingCodes.MAX_HEADER_LIST_SIZE: max_head_bytes,
        },
    )
    connection.encoder = BoundedEncoder()
    connection.decoder.max_header_list_size = 2 * max_head_bytes  # what is a little too long is told so
    # For h2 a connection is over with the first GOAWAY of either side; by the protocol its streams go on to their ends.
    machine = connection.state_machine
    stay = {
        (ConnectionState.SERVER_OPEN, said): (None, ConnectionState.SERVER_OPEN)
        for said in (ConnectionInputs.SEND_GOAWAY, ConnectionInputs.RECV_GOAWAY)
    }
    machine._transitions = {**machine._transitions, **stay}
    return connection
