"""Lists of tool calls, newest first."""

from ramet_server.domain.call import Call
from ramet_server.domain.ids import check_optional_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.paging import check_page_size, query_fingerprint
from ramet_server.domain.text import check_label
from telemetry.rules.answer_ports import AnswersStore
from telemetry.rules.list_queries import ToolFilter, ToolQuery
from telemetry.rules.pages import EXAMINED, Page, PageWish, place_of, token_of
from telemetry.rules.values import ToolCall

MAX_TOOL_NAME_CHARACTERS = 64


class ToolRules:
    """Lists tool calls."""

    def __init__(self, store: AnswersStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    def list(self, call: Call, admits: ToolFilter, wish: PageWish) -> Page[ToolCall]:
        """Returns a page, maybe a short one; see the contract."""
        check_optional_id(admits.session_id, "filter.session_id")
        check_label(admits.tool_name, "filter.tool_name", MAX_TOOL_NAME_CHARACTERS)
        limit = check_page_size(wish.size, self._limits.default_page_size, self._limits.max_page_size)
        parts = [getattr(admits, name) for name in ToolFilter.__dataclass_fields__]
        fingerprint = query_fingerprint("ListToolInvocations", call.space, *parts)
        query = ToolQuery(
            admits, place_of(wish.token, fingerprint), limit, EXAMINED, max_bytes=self._limits.max_page_bytes
        )
        found = self._store.read(call, lambda unit: unit.tools.examine(query))
        return Page(found.rows, token_of(found.goes_on_after, fingerprint))
