"""Where a history stands and which spans it shows, read in one statement and thus of one moment."""

from collections.abc import Mapping
from functools import cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Integer, and_, bindparam, literal_column, select, union_all

from ramet_server.database.prepared import Prepared
from ramet_server.database.tables.session import history_span, session
from session_service.rules.spans import Span
from session_service.rules.values import View
from session_service.store.spans import SPAN_WORDS, words

_KEY = and_(
    session.c.space_id == bindparam("in_space", type_=session.c.space_id.type),
    session.c.session_id == bindparam("of_session", type_=session.c.session_id.type),
)
_STANDS = words(session.c.origin, session.c.head_seq, session.c.floor_seq, session.c.max_record_bytes)
_WORDS_OF_VIEW = 4


def read_view(
    connection: Connection,
    key: Mapping[str, str],
    after_seq: int,
    before_seq: int,
    *,
    descending: bool,
    limit: int | None,
) -> tuple[View, list[Span]] | None:
    """Returns both, of the session that ``in_space`` and ``of_session`` name; see ``rules.ports.Sessions.view``."""
    values: dict[str, Any] = {"after_seq": after_seq, "before_seq": before_seq, **key}
    if limit is not None:
        values["most"] = limit
    rows = _statement(descending=descending, limited=limit is not None).all(connection, values)
    told = [row[0].split(" ") for row in rows]
    # A union may come in any order.
    views = [View(each[0], int(each[1]), int(each[2]), int(each[3])) for each in told if len(each) == _WORDS_OF_VIEW]
    if not views:
        return None
    spans = [Span(each[0], int(each[1]), int(each[2])) for each in told if len(each) != _WORDS_OF_VIEW]
    spans.sort(key=itemgetter(1))
    return views[0], spans


@cache
def _statement(*, descending: bool, limited: bool) -> Prepared:
    c = history_span.c
    spans = (
        select(SPAN_WORDS.label("row_words"))
        .select_from(session)
        .join(history_span, c.owner_origin == session.c.origin)
        .where(
            _KEY,
            c.first_seq < bindparam("before_seq", type_=c.first_seq.type),
            c.last_seq > bindparam("after_seq", type_=c.last_seq.type),
        )
        .order_by(c.first_seq.desc() if descending else c.first_seq)
    )
    if limited:
        # The offset is named because SQLite's statement has one anyhow, as a parameter without a name.
        spans = spans.limit(bindparam("most", type_=Integer())).offset(literal_column("0", Integer()))
    # SQLite takes an order and a limit within a union only in a query of its own.
    return Prepared(union_all(select(_STANDS.label("row_words")).where(_KEY), select(spans.subquery())))
