"""Frozen configs."""

import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.domain.errors import InvalidField, NodeNotFound, StaleVersion, TooLarge
from tests.tree_service.forest import Forest


def test_a_node_without_config_has_version_0(forest: Forest) -> None:
    forest.create("a")
    assert forest.config("a") == pb.Config(version=0)


@pytest.mark.parametrize(
    "given",
    [
        pb.Config(),
        pb.Config(system_prompt=""),
        pb.Config(skills=pb.Skills()),
        pb.Config(system_prompt="你好 🌱\n'\"\\", skills=pb.Skills(names=["b", "a", "ä🌱", "a"])),
    ],
)
def test_absent_and_empty_stay_apart(forest: Forest, given: pb.Config) -> None:
    forest.create("a", config=given)
    forest.create("b")
    forest.put_config("b", given)
    for node_id in ("a", "b"):
        stored = forest.config(node_id)
        assert stored.version == 1
        assert stored.HasField("system_prompt") == given.HasField("system_prompt")
        assert stored.HasField("skills") == given.HasField("skills")
        assert (stored.system_prompt, stored.skills) == (given.system_prompt, given.skills)


def test_a_put_replaces_the_whole(forest: Forest) -> None:
    forest.create("a", config=pb.Config(system_prompt="x", skills=pb.Skills(names=["s"])))
    stored = forest.put_config("a", pb.Config(system_prompt="y"), expected_version=1)
    assert (stored.version, stored.system_prompt, stored.HasField("skills")) == (2, "y", False)
    assert forest.config("a") == stored
    assert forest.get("a").version == 1


def test_a_stale_version_is_refused(forest: Forest) -> None:
    forest.create("a")
    assert forest.put_config("a", pb.Config(), expected_version=0).version == 1
    with pytest.raises(StaleVersion) as refused:
        forest.put_config("a", pb.Config(system_prompt="x"), expected_version=0)
    assert refused.value.details == {"current": "1"}
    assert not forest.config("a").HasField("system_prompt")


def test_a_config_is_required_and_the_node_too(forest: Forest) -> None:
    forest.create("a")
    with pytest.raises(InvalidField):
        forest.put_config("a", None)
    with pytest.raises(NodeNotFound):
        forest.put_config("b", pb.Config())
    with pytest.raises(NodeNotFound):
        forest.config("b")


def test_limits_hold_to_the_byte(forest: Forest) -> None:
    limit = forest.limits.max_slot_bytes
    text = "ä" * (limit // 2)
    forest.create("a", config=pb.Config(system_prompt=text))
    assert forest.config("a").system_prompt == text
    with pytest.raises(TooLarge):
        forest.put_config("a", pb.Config(system_prompt=text + "x"))
    with pytest.raises(TooLarge):
        forest.put_config("a", pb.Config(skills=pb.Skills(names=["s"] * 1001)))
    with pytest.raises(TooLarge):
        forest.put_config("a", pb.Config(skills=pb.Skills(names=["s" * 257])))
    with pytest.raises(InvalidField):
        forest.put_config("a", pb.Config(skills=pb.Skills(names=["s", ""])))
    with pytest.raises(InvalidField):
        forest.put_config("a", pb.Config(system_prompt="a\0"))
    names = ["🌱" * 256] * 1000
    assert forest.put_config("a", pb.Config(skills=pb.Skills(names=names))).version == 2
    assert forest.config("a").skills.names == names


def test_a_put_that_was_sent_twice_takes_effect_once(forest: Forest) -> None:
    forest.create("a")
    first = forest.put_config("a", pb.Config(system_prompt="x"), request_id="q")
    assert forest.put_config("a", pb.Config(system_prompt="x"), request_id="q") == first
    assert forest.config("a").version == 1
