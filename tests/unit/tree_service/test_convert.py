"""Messages to values and back."""

from datetime import UTC, datetime

import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.domain.errors import InvalidField, TooLarge
from tree_service import convert
from tree_service.rules.values import Config, DeletePolicy, Node, SessionSummary, ShownNode, TreeEntry, TreePage

MOMENT = datetime(2026, 11, 30, 21, 4, 5, 123457, tzinfo=UTC)


def shown(**fields: object) -> ShownNode:
    """Returns a root, or what the fields make of it."""
    values: dict[str, object] = {
        "node_id": "a",
        "parent_id": None,
        "depth": 0,
        "index": 2,
        "child_count": 0,
        "label": "",
        "source_session_id": None,
        "awaits_content": False,
        "version": 3,
        "created_at": MOMENT,
        "updated_at": MOMENT,
    }
    return ShownNode(Node(**values | fields))  # type: ignore[arg-type]  # the names are those of the fields


def test_a_request_is_hashed_without_its_id() -> None:
    def hash_of(request: pb.CreateSessionRequest) -> str:
        return convert.mutation("CreateSession", request).body_hash

    first = pb.CreateSessionRequest(label="x", request_id="q")
    assert hash_of(first) == hash_of(pb.CreateSessionRequest(label="x", request_id="r"))
    assert hash_of(first) != hash_of(pb.CreateSessionRequest(label="y", request_id="q"))
    assert hash_of(pb.CreateSessionRequest(config=pb.Config())) != hash_of(pb.CreateSessionRequest())
    assert convert.mutation("AddRef", pb.AddRefRequest()).body_hash != hash_of(pb.CreateSessionRequest())
    assert first.request_id == "q"


def test_a_request_without_an_id_is_a_new_one_and_a_bad_id_is_refused() -> None:
    assert convert.mutation("AddRef", pb.AddRefRequest()).request_id is None
    with pytest.raises(TooLarge):
        convert.mutation("AddRef", pb.AddRefRequest(request_id="x" * 129))
    with pytest.raises(InvalidField):
        convert.mutation("AddRef", pb.AddRefRequest(request_id=" x"))


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (pb.Config(), Config(None, None)),
        (pb.Config(system_prompt=""), Config("", None)),
        (pb.Config(skills=pb.Skills()), Config(None, ())),
        (pb.Config(system_prompt="p", skills=pb.Skills(names=["b", "a"])), Config("p", ("b", "a"))),
    ],
)
def test_absent_and_empty_stay_apart_both_ways(message: pb.Config, value: Config) -> None:
    assert convert.config(message) == value
    assert convert.config_message(value) == message


def test_the_version_of_a_config_that_comes_in_means_nothing() -> None:
    assert convert.config(pb.Config(version=7)).version == 0


def test_absent_fields_of_a_move_are_none() -> None:
    move = convert.move(pb.MoveNodeRequest(node_id="a"))
    assert (move.parent_id, move.index, move.expected_version) == (None, None, None)
    move = convert.move(pb.MoveNodeRequest(node_id="a", parent_id="", index=0, expected_version=0))
    assert (move.parent_id, move.index, move.expected_version) == ("", 0, 0)


def test_every_policy_has_a_meaning() -> None:
    for policy in pb.DeletePolicy.values():
        assert convert.deletion(pb.DeleteNodeRequest(policy=policy)).policy in DeletePolicy
    assert convert.deletion(pb.DeleteNodeRequest()).policy is DeletePolicy.REFUSE


def test_a_node_is_written_whole() -> None:
    message = convert.node_message(ShownNode(shown().node, refs=("r",), children=("c", "d")))
    assert not message.HasField("parent_id")
    assert (list(message.refs), list(message.children), message.index, message.version) == (["r"], ["c", "d"], 2, 3)
    assert message.created_at.ToDatetime(tzinfo=UTC) == MOMENT
    assert convert.node_message(shown(parent_id="p")).parent_id == "p"


@pytest.mark.parametrize(
    ("session", "status", "has_turns"),
    [
        (None, pb.SESSION_STATUS_UNSPECIFIED, False),
        (SessionSummary("ACTIVE", 0), pb.SESSION_STATUS_ACTIVE, True),
        (SessionSummary("ARCHIVED", 5), pb.SESSION_STATUS_ARCHIVED, True),
    ],
)
def test_an_entry_tells_of_its_session_where_there_is_one(
    session: SessionSummary | None, status: "pb.SessionStatus.ValueType", has_turns: bool
) -> None:
    (entry,) = convert.tree_message(TreePage((TreeEntry(shown(), session),), "", 0)).entries
    assert entry.status == status
    assert entry.HasField("turn_count") == has_turns
