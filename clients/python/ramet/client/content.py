"""The content of single sessions from Python: the methods that a client and a transaction have in common."""

from collections.abc import AsyncGenerator, Iterable, Sequence

from google.protobuf.field_mask_pb2 import FieldMask

from ramet.client import convert
from ramet.client.arguments import build, each
from ramet.client.calls import new_request_id
from ramet.client.slots import SlotMethods
from ramet.client.values import Appended, Record, RecordPage, Role, Session, Trimmed
from ramet.session.v1 import session_pb2 as pb

__all__ = ["ContentMethods"]


class ContentMethods(SlotMethods):
    """The part of SessionStorageClient that reads and writes metadata, records and slots of one session."""

    async def get_session(self, session_id: str) -> Session:
        """Reads the metadata of one session."""
        request = build(pb.GetSessionRequest, session_id=session_id)
        return convert.session_in(await self._caller.unary(self._stub.GetSession, request))

    async def put_session(
        self,
        session_id: str | None = None,
        *,
        label: str | None = None,
        tags: Iterable[str] | None = None,
        metadata_json: str | None = None,
        system_prompt: str | None = None,
        expected_version: int | None = None,
        request_id: str | None = None,
    ) -> Session:
        """Creates a session, or updates what is given of one; None leaves a field as it is, empty clears it.

        Without ``session_id`` the server makes an id. ``expected_version`` 0 only creates; another only updates that
        very version; None does either. A ``system_prompt`` is written in the same transaction.
        """
        session = build(
            pb.Session, id=session_id or "", label=label or "", tags=tags or (), metadata_json=metadata_json or ""
        )
        given = {"label": label, "tags": tags, "metadata_json": metadata_json}
        mask = [path for path, value in given.items() if value is not None]
        request = build(
            pb.PutSessionRequest,
            session=session,
            update_mask=FieldMask(paths=mask) if mask else None,
            expected_version=expected_version,
            system_prompt=system_prompt,
            request_id=request_id or new_request_id(),
        )
        return convert.session_in(await self._caller.unary(self._stub.PutSession, request))

    async def append_records(
        self,
        session_id: str,
        records: Iterable[Record],
        *,
        expected_head_seq: int | None = None,
        consume_insight_version: int | None = None,
        turn_delta: int = 0,
        request_id: str | None = None,
    ) -> Appended:
        """Appends 1 to 1,000 records, all or none.

        ``expected_head_seq`` refuses the append when somebody else appended meanwhile. ``consume_insight_version`` is
        the version of the insight that this turn read: it is unset in the same transaction, but a newer one stays.
        """
        request = build(
            pb.AppendRecordsRequest,
            session_id=session_id,
            records=each(convert.record_out, records, "records"),
            expected_head_seq=expected_head_seq,
            consume_insight_version=consume_insight_version,
            turn_delta=turn_delta,
            request_id=request_id or new_request_id(),
        )
        reply = await self._caller.unary(self._stub.AppendRecords, request)
        return Appended(
            seqs=tuple(reply.seqs),
            session=convert.session_in(reply.session) if reply.HasField("session") else None,
            insight_consumed=reply.insight_consumed,
            insight_version=reply.insight_version,
        )

    async def list_records(
        self,
        session_id: str,
        *,
        roles: Sequence[Role] = (),
        after_seq: int | None = None,
        before_seq: int | None = None,
        descending: bool = False,
        page_size: int = 0,
        offset: int = 0,
        page_token: str | None = None,
    ) -> RecordPage:
        """Lists one page of records by seq: 100, or up to 1,000, or what fits into the server's page bytes."""
        request = build(
            pb.ListRecordsRequest,
            session_id=session_id,
            roles=each(convert.role_out, roles, "roles"),
            after_seq=after_seq,
            before_seq=before_seq,
            order=pb.RECORD_ORDER_DESCENDING if descending else pb.RECORD_ORDER_ASCENDING,
            page_size=page_size,
            offset=offset,
            page_token=page_token or "",
        )
        reply = await self._caller.unary(self._stub.ListRecords, request)
        records = tuple(map(convert.record_in, reply.records))
        return RecordPage(records, reply.next_page_token or None, reply.head_seq, reply.floor_seq)

    async def iter_records(
        self,
        session_id: str,
        *,
        roles: Sequence[Role] = (),
        after_seq: int | None = None,
        before_seq: int | None = None,
        descending: bool = False,
    ) -> AsyncGenerator[Record, None]:
        """Yields records by seq, page by page, so that a history of any length fits into memory."""
        token: str | None = ""
        while token is not None:
            page = await self.list_records(
                session_id,
                roles=roles,
                after_seq=after_seq,
                before_seq=before_seq,
                descending=descending,
                page_size=1000,
                page_token=token,
            )
            for record in page.records:
                yield record
            token = page.next_page_token

    async def trim_records(
        self,
        session_id: str,
        keep_last: int,
        *,
        expected_head_seq: int | None = None,
        request_id: str | None = None,
    ) -> Trimmed:
        """Keeps the most recent records and drops the older ones; a tool-call group is never split."""
        request = build(
            pb.TrimRecordsRequest,
            session_id=session_id,
            keep_last=keep_last,
            expected_head_seq=expected_head_seq,
            request_id=request_id or new_request_id(),
        )
        reply = await self._caller.unary(self._stub.TrimRecords, request)
        return Trimmed(reply.kept_records, reply.floor_seq)

    async def truncate_records(
        self,
        session_id: str,
        after_seq: int,
        *,
        expected_head_seq: int | None = None,
        request_id: str | None = None,
    ) -> int:
        """Rewinds: drops every record after a seq, and returns the new head. Seqs are not reused."""
        request = build(
            pb.TruncateRecordsRequest,
            session_id=session_id,
            after_seq=after_seq,
            expected_head_seq=expected_head_seq,
            request_id=request_id or new_request_id(),
        )
        return (await self._caller.unary(self._stub.TruncateRecords, request)).head_seq
