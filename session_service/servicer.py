"""SessionStorage, a short method per RPC: message in, rule called, message out."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from functools import cached_property, partial

from ramet.session.v1 import session_pb2 as pb
from ramet_server import __version__
from ramet_server.domain.call import Call
from ramet_server.domain.limits import Limits
from ramet_server.serving.endings import Ending
from ramet_server.serving.gathering import Gathered
from ramet_server.serving.handlers import Unparsed
from ramet_server.serving.workers import Workers
from session_service.convert import histories, records, sessions, slots
from session_service.convert.requests import mutation
from session_service.rules.contexts import ContextRules
from session_service.rules.deletion import DeletionRules
from session_service.rules.diffs import DiffRules
from session_service.rules.erasure import ErasureRules
from session_service.rules.forks import ForkRules
from session_service.rules.records import RecordRules
from session_service.rules.sessions import SessionRules
from session_service.rules.slots import SlotRules
from session_service.rules.transactions import TransactionRules
from session_service.rules.trimming import TrimRules
from session_service.rules.values import SlotName, Status
from session_service.transacting import Reply, TransactStream
from session_service.watching import RecordWatches


class SessionStorageServicer:
    """Answers the RPCs of sessions."""

    def __init__(
        self,
        *,
        sessions: SessionRules,
        deletion: DeletionRules,
        records: RecordRules,
        trimming: TrimRules,
        erasure: ErasureRules,
        slots: SlotRules,
        contexts: ContextRules,
        forks: ForkRules,
        diffs: DiffRules,
        transactions: TransactionRules,
        watches: RecordWatches,
        limits: Limits,
        schema_revision: str,
    ) -> None:
        self._sessions = sessions
        self._deletion = deletion
        self._records = records
        self._trimming = trimming
        self._erasure = erasure
        self._slots = slots
        self._contexts = contexts
        self._forks = forks
        self._diffs = diffs
        self._transactions = transactions
        self._watches = watches
        self._limits = limits
        self._schema_revision = schema_revision

    @cached_property
    def gathers(self) -> Mapping[str, Gathered]:
        """Methods whose calls are done together; see ``ramet_server.serving.gathering``."""
        return {
            "AppendRecords": Gathered(
                lane=lambda request: request.session_id,
                read=lambda request: (mutation("AppendRecords", request), records.append(request)),
                run=self._records.append_together,
                write=records.appended_message,
            ),
            "GetSession": Gathered(
                lane=None,
                read=lambda request: request.session_id,
                run=self._sessions.get_together,
                write=sessions.session_message,
            ),
            "GetSystemPrompt": self._gathered_slot(SlotName.SYSTEM_PROMPT),
            "GetInsight": self._gathered_slot(SlotName.INSIGHT),
            "GetMemory": self._gathered_slot(SlotName.MEMORY),
        }

    def _gathered_slot(self, name: SlotName) -> Gathered:
        return Gathered(
            lane=None,
            read=lambda request: request.session_id,
            run=partial(self._slots.get_together, name=name),
            write=slots.slot_message,
        )

    def GetSession(self, request: pb.GetSessionRequest, call: Call) -> pb.Session:
        """Reads the metadata of one session."""
        return sessions.session_message(self._sessions.get(call, request.session_id))

    def BatchGetSessions(self, request: pb.BatchGetSessionsRequest, call: Call) -> pb.BatchGetSessionsResponse:
        """Reads the metadata of many sessions."""
        return sessions.batch_message(self._sessions.get_many(call, request.session_ids))

    def ListSessions(self, request: pb.ListSessionsRequest, call: Call) -> pb.ListSessionsResponse:
        """Lists sessions page by page."""
        return sessions.page_message(self._sessions.list(call, sessions.session_list(request)))

    def PutSession(self, request: pb.PutSessionRequest, call: Call) -> pb.Session:
        """Creates or updates a session."""
        put = sessions.session_put(request)
        return sessions.session_message(self._sessions.put(call, mutation("PutSession", request), put))

    def ArchiveSession(self, request: pb.ArchiveSessionRequest, call: Call) -> pb.Session:
        """Archives a session."""
        change = mutation("ArchiveSession", request)
        return sessions.session_message(
            self._sessions.set_status(call, change, request.session_id, _expected(request), Status.ARCHIVED)
        )

    def RestoreSession(self, request: pb.RestoreSessionRequest, call: Call) -> pb.Session:
        """Makes an archived session writable again."""
        change = mutation("RestoreSession", request)
        return sessions.session_message(
            self._sessions.set_status(call, change, request.session_id, _expected(request), Status.ACTIVE)
        )

    def DeleteSession(self, request: pb.DeleteSessionRequest, call: Call) -> pb.DeleteSessionResponse:
        """Deletes a session."""
        self._deletion.delete(call, mutation("DeleteSession", request), request.session_id, _expected(request))
        return pb.DeleteSessionResponse()

    def AppendRecords(self, request: pb.AppendRecordsRequest, call: Call) -> pb.AppendRecordsResponse:
        """Appends records."""
        append = records.append(request)
        return records.appended_message(self._records.append(call, mutation("AppendRecords", request), append))

    def ListRecords(self, request: pb.ListRecordsRequest, call: Call) -> pb.ListRecordsResponse:
        """Lists records by seq."""
        return records.page_message(self._records.list(call, records.record_query(request)))

    def TrimRecords(self, request: pb.TrimRecordsRequest, call: Call) -> pb.TrimRecordsResponse:
        """Keeps the most recent records."""
        trim = records.trim(request)
        return records.trimmed_message(self._trimming.trim(call, mutation("TrimRecords", request), trim))

    def TruncateRecords(self, request: pb.TruncateRecordsRequest, call: Call) -> pb.TruncateRecordsResponse:
        """Drops every record after a seq."""
        truncate = records.truncate(request)
        head_seq = self._trimming.truncate(call, mutation("TruncateRecords", request), truncate)
        return pb.TruncateRecordsResponse(head_seq=head_seq)

    def EraseRecord(self, request: pb.EraseRecordRequest, call: Call) -> pb.Record:
        """Erases the content of one record."""
        change = mutation("EraseRecord", request)
        return records.record_message(self._erasure.erase_record(call, change, request.session_id, request.seq))

    async def WatchRecords(
        self, request: pb.WatchRecordsRequest, call: Call, workers: Workers
    ) -> AsyncIterator[pb.WatchRecordsResponse]:
        """Streams records as they are committed."""
        after_seq = request.after_seq if request.HasField("after_seq") else None
        async with aclosing(self._watches.follow(request.session_id, after_seq, call, workers)) as messages:
            async for message in messages:
                yield message

    def GetSystemPrompt(self, request: pb.GetSystemPromptRequest, call: Call) -> pb.Slot:
        """Reads the slot systemPrompt."""
        return slots.slot_message(self._slots.get(call, request.session_id, SlotName.SYSTEM_PROMPT))

    def PutSystemPrompt(self, request: pb.PutSystemPromptRequest, call: Call) -> pb.Slot:
        """Writes the slot systemPrompt."""
        write = slots.slot_put(request, SlotName.SYSTEM_PROMPT)
        return slots.slot_message(self._slots.put(call, mutation("PutSystemPrompt", request), write))

    def GetInsight(self, request: pb.GetInsightRequest, call: Call) -> pb.Slot:
        """Reads the slot insight."""
        return slots.slot_message(self._slots.get(call, request.session_id, SlotName.INSIGHT))

    def PutInsight(self, request: pb.PutInsightRequest, call: Call) -> pb.Slot:
        """Writes the slot insight."""
        write = slots.slot_put(request, SlotName.INSIGHT)
        return slots.slot_message(self._slots.put_insight(call, mutation("PutInsight", request), write))

    def ClearInsight(self, request: pb.ClearInsightRequest, call: Call) -> pb.Slot:
        """Unsets the slot insight."""
        write = slots.slot_clear(request)
        return slots.slot_message(self._slots.put(call, mutation("ClearInsight", request), write))

    def GetMemory(self, request: pb.GetMemoryRequest, call: Call) -> pb.Slot:
        """Reads the slot memory."""
        return slots.slot_message(self._slots.get(call, request.session_id, SlotName.MEMORY))

    def PutMemory(self, request: pb.PutMemoryRequest, call: Call) -> pb.Slot:
        """Writes the slot memory."""
        write = slots.slot_put(request, SlotName.MEMORY)
        return slots.slot_message(self._slots.put(call, mutation("PutMemory", request), write))

    def BatchGetSlots(self, request: pb.BatchGetSlotsRequest, call: Call) -> Iterator[pb.BatchGetSlotsResponse]:
        """Streams slots of many sessions."""
        wanted = self._slots.of_many(call, request.session_ids, slots.slot_names(request))
        return slots.batch_messages(wanted)

    def GetContext(self, request: pb.GetContextRequest, call: Call) -> pb.GetContextResponse:
        """Reads what one send needs."""
        return histories.context_message(self._contexts.get(call, request.session_id, histories.budget(request)))

    def ForkSession(self, request: pb.ForkSessionRequest, call: Call) -> pb.ForkSessionResponse:
        """Makes a new session over the history of a source."""
        fork = histories.fork(request)
        return histories.forked_message(self._forks.fork(call, mutation("ForkSession", request), fork))

    def DiffSessions(self, request: pb.DiffSessionsRequest, call: Call) -> pb.DiffSessionsResponse:
        """Compares two sessions."""
        diff = self._diffs.compare(call, request.left_session_id, request.right_session_id)
        return histories.diff_message(diff)

    async def Transact(
        self, requests: AsyncIterator[Unparsed], call: Call, workers: Workers, ending: Ending
    ) -> AsyncIterator[Reply]:
        """Runs reads and writes as one transaction."""
        stream = TransactStream(self._transactions, self._limits, call, workers, ending)
        async with aclosing(stream.replies(requests)) as replies:
            async for reply in replies:
                yield reply

    def GetServerInfo(self, _: pb.GetServerInfoRequest, call: Call) -> pb.GetServerInfoResponse:  # noqa: ARG002 - every RPC has this shape
        """Tells version, schema revision and limits."""
        return pb.GetServerInfoResponse(
            version=__version__,
            schema_revision=self._schema_revision,
            limits=histories.limits_message(self._limits),
        )


def _expected(request: pb.ArchiveSessionRequest | pb.RestoreSessionRequest | pb.DeleteSessionRequest) -> int | None:
    return request.expected_version if request.HasField("expected_version") else None
