"""The process that speaks MCP with the official SDK: `python -m wave_agent.mcp.host_program DESCRIPTOR`.

One for all servers of a session. The SDK takes longer to import than the agent to start, and servers are other people's
programs: whatever they do to it, the agent only loses this process.

It ends when the agent does: a thread watches the socket, even while the event loop is busy.
"""

import os
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress

_PATIENCE = 1.5
"""Seconds for an orderly end after the agent has gone."""
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    sock = socket.socket(fileno=int(sys.argv[1]))
    sock.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the agent, which ends this process itself.
    _adopt_descendants()
    threading.Thread(target=_watch, args=(sock.fileno(),), daemon=True).start()

    import asyncio
    import logging

    logging.disable()  # The SDK logs every line that it cannot parse.
    from wave_agent.mcp.sdk.service import serve  # here, so that the watch begins before the slow import

    asyncio.run(serve(sock))
    _kill_descendants()
    os._exit(0)  # No thread and no destructor may delay it.


def _adopt_descendants() -> None:
    """Daemons of servers become children of this process, wherever they detach to."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _watch(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, getattr(select, "POLLRDHUP", 0))
    poll.poll()
    time.sleep(_PATIENCE)
    _kill_descendants()
    os._exit(1)


def _kill_descendants() -> None:
    from wave_agent.mcp.host_process import kill_descendants

    kill_descendants()


if __name__ == "__main__":
    main()
