"""Servers of the standard library that answer in a thread."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def running(server: socketserver.BaseServer) -> Iterator[None]:
    """Serves until the block ends, then closes the server."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
