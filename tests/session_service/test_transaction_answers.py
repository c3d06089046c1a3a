"""The steps of a transaction are answered as the single calls would be, whatever was written before them."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.protobuf.message import Message

from ramet.session.v1 import session_pb2 as pb
from ramet_server.domain.errors import RametError
from session_service.convert import transactions as convert
from session_service.rules.erasure import ErasureRules
from session_service.rules.transactions import Transaction, TransactionRules
from session_service.store.unit import SqlStore
from tests.session_service.storage import Storage, records

_STEPS = 40
_WORDS = ("u", "a", "s", "a(x)", "a(x,y)", "t(x)", "t(y)", "u a(y) t(y)", "a(x) a(y) t(y) t(x)", "t(z)")
_SLOTS = ("system_prompt", "insight", "memory")


def _requests(dice: random.Random, session_id: str) -> Iterator[pb.TransactRequest]:
    """Random steps on one session; what they ask for fits its state often, and not always."""
    for number in range(_STEPS):
        kind = dice.choice(
            ("append", "append", "append", "list", "list", "trim", "truncate", "put", "slot", "slot", "get")
        )
        step: Any = pb.TransactRequest()
        if kind == "append":
            step.append_records.records.extend(records(dice.choice(_WORDS)))
            step.append_records.turn_delta = dice.randrange(3)
            if dice.random() < 0.4:
                step.append_records.consume_insight_version = dice.randrange(4)
        elif kind == "list":
            wanted = step.list_records
            wanted.page_size, wanted.offset = dice.randrange(1, 6), dice.choice((0, 0, dice.randrange(20)))
            wanted.order = dice.choice((pb.RECORD_ORDER_ASCENDING, pb.RECORD_ORDER_DESCENDING))
            wanted.roles.extend(dice.sample((pb.ROLE_USER, pb.ROLE_ASSISTANT, pb.ROLE_TOOL), dice.randrange(3)))
            if dice.random() < 0.3:
                wanted.after_seq = dice.randrange(12)
            if dice.random() < 0.3:
                wanted.before_seq = dice.randrange(4, 24)
        elif kind == "trim":
            step.trim_records.keep_last = dice.randrange(2, 12)
        elif kind == "truncate":
            step.truncate_records.after_seq = dice.randrange(30)
        elif kind == "put":
            step.put_session.session.label = f"label {number}"
            step.put_session.session.tags.extend(dice.sample("abc", 2))
            if dice.random() < 0.3:
                step.put_session.system_prompt = f"prompt {number}"
        elif kind == "slot":
            name = dice.choice(_SLOTS)
            if dice.random() < 0.5:
                getattr(step, f"get_{name}").SetInParent()
            else:
                getattr(step, f"put_{name}").content = f"{name} {number}"
        else:
            step.get_session.SetInParent()
        request = getattr(step, step.WhichOneof("step"))
        if kind == "put":
            request.session.id = session_id
        else:
            request.session_id = session_id
        yield step


def _called(storage: Storage, step: pb.TransactRequest) -> str:
    """Makes a step as a call of its own."""
    kind = step.WhichOneof("step")
    assert kind is not None
    method = "".join(word.title() for word in kind.split("_"))
    request = type(getattr(step, kind)).FromString(getattr(step, kind).SerializeToString())
    return _told(lambda: getattr(storage.service, method)(request, storage.call))


def _taken(storage: Storage, transaction: Transaction, step: pb.TransactRequest) -> str:
    """Makes a step in a transaction."""

    def answer() -> Message:
        read = convert.read_step(step, storage.space, storage.limits)
        response = convert.answer_message(transaction.run(storage.call, read, step.ByteSize(), b""))
        found: Message = getattr(response, str(response.WhichOneof("result")))
        return found

    return _told(answer)


def _told(call: Callable[[], Message]) -> str:
    """Returns an answer as text, without its times, its tokens and the name of the session."""
    try:
        message = call()
    except RametError as error:
        return error.reason
    lines = str(message).splitlines()
    left_out = ("seconds:", "nanos:", "next_page_token:")
    return "\n".join(line.replace("twin", "main") for line in lines if not line.strip().startswith(left_out))


@pytest.mark.parametrize("seed", range(12))
def test_random_steps_are_answered_as_single_calls_are_and_leave_the_same(storage: Storage, seed: int) -> None:
    dice = random.Random(seed)
    beginning = " ".join(dice.choices(_WORDS, k=6))
    for session_id in ("main", "twin"):
        # A source, so that the history has a span of another session's as well.
        storage.put(f"{session_id}-source", beginning)
        storage.fork(f"{session_id}-source", session_id)
        storage.append(session_id, beginning)
        storage.put_insight(session_id, "hint")
    store = SqlStore(storage.database, storage.clock, storage.limits.request_id_hours)
    rules = TransactionRules(store, storage.limits, storage.clock, ErasureRules(store, storage.clock))
    transaction = rules.open()
    transaction.begin(storage.call, f"random-{seed}")
    answers = []
    for ours, theirs in zip(
        _requests(random.Random(seed), "main"), _requests(random.Random(seed), "twin"), strict=True
    ):
        expected = _called(storage, theirs)
        answers.append((str(ours), _taken(storage, transaction, ours), expected))
    assert [(step, told) for step, told, _ in answers] == [(step, expected) for step, _, expected in answers]
    assert len({told for _, told, _ in answers}) > _STEPS // 3
    transaction.commit(storage.call)
    transaction.close()
    assert storage.said("main") == storage.said("twin")
    assert storage.seqs("main") == storage.seqs("twin")
    assert storage.context("main").incomplete_records == storage.context("twin").incomplete_records
    for session_id in ("main", "twin"):
        storage.fork(session_id, f"{session_id}-child")
    assert storage.seqs("main-child") == storage.seqs("twin-child")
    assert storage.get("main").version == storage.get("twin").version
