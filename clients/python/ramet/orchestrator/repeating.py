"""Whether a write took effect before: asked of the server's log, without making the write again."""

from ramet.client import Aborted, AlreadyExists, Client, Record

__all__ = ["took_effect"]

_NO_HEAD = (1 << 63) - 1
"""A head that no session ever has."""


async def took_effect(client: Client, session_id: str, append_id: str) -> bool:
    """Tells whether an append with this id was committed; raises where the session takes no writes.

    An append that can never take effect asks: what the real one held need not be made twice to be compared.
    """
    try:
        await client.sessions.append_records(
            session_id, [Record.user("?")], expected_head_seq=_NO_HEAD, request_id=append_id
        )
    except Aborted as error:
        if error.reason != "STALE_HEAD":
            raise
    except AlreadyExists as error:
        if error.reason != "REQUEST_ID_REUSED":
            raise
        return True
    return False
