"""Frozen configs: what forks inherit; absent and empty are two things."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from ramet.session.v1 import session_pb2
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.refusing import bad_field, reason_of, stale_version, too_large, unknown_node
from tests.conformance.session import making as storing
from tests.conformance.tree.making import create, get

MIB = 1024 * 1024


def read(tree: SessionTreeStub, node_id: str = "a") -> pb.Config:
    """Read a config."""
    return tree.GetConfig(pb.GetConfigRequest(node_id=node_id))


def write(
    tree: SessionTreeStub, config: pb.Config, node_id: str = "a", *, expected_version: int | None = None
) -> pb.Config:
    """Replace a config."""
    return tree.PutConfig(pb.PutConfigRequest(node_id=node_id, config=config, expected_version=expected_version))


SHAPES = [
    pytest.param(pb.Config(), id="nothing"),
    pytest.param(pb.Config(system_prompt=""), id="an empty prompt"),
    pytest.param(pb.Config(system_prompt="Be brief. 简短 👋"), id="a prompt"),
    pytest.param(pb.Config(skills=pb.Skills()), id="no skills"),
    pytest.param(pb.Config(skills=pb.Skills(names=["b", "a", "b", "写 作"])), id="skills in order"),
    pytest.param(pb.Config(system_prompt="p", skills=pb.Skills(names=["a"])), id="both"),
]


class TestConfigs:
    @pytest.mark.parametrize("config", SHAPES)
    def test_what_was_created_with_is_read_and_absent_differs_from_empty(
        self, tree: SessionTreeStub, config: pb.Config
    ) -> None:
        create(tree, "a", config=config)
        stored = read(tree)
        assert stored.version == 1
        stored.ClearField("version")
        assert stored == config

    @pytest.mark.parametrize("config", SHAPES)
    def test_a_put_replaces_the_whole(self, tree: SessionTreeStub, config: pb.Config) -> None:
        create(tree, "a", config=pb.Config(system_prompt="old", skills=pb.Skills(names=["old"])))
        stored = write(tree, config)
        assert stored.version == 2
        assert read(tree) == stored
        stored.ClearField("version")
        assert stored == config

    def test_where_none_was_given_the_version_is_zero(self, tree: SessionTreeStub) -> None:
        create(tree, "a")
        assert read(tree) == pb.Config()
        assert write(tree, pb.Config(system_prompt="p"), expected_version=0).version == 1

    def test_the_version_of_the_request_is_ignored(self, tree: SessionTreeStub) -> None:
        create(tree, "a", config=pb.Config(system_prompt="p", version=9))
        assert read(tree).version == 1
        assert write(tree, pb.Config(system_prompt="q", version=9)).version == 2

    def test_a_stale_version_is_refused(self, tree: SessionTreeStub) -> None:
        create(tree, "a", config=pb.Config(system_prompt="p"))
        write(tree, pb.Config(system_prompt="newer"), expected_version=1)
        for stale in (0, 1):
            with stale_version() as refusal:
                write(tree, pb.Config(system_prompt="delayed"), expected_version=stale)
            assert refusal.metadata["current"] == "2"
        assert read(tree).system_prompt == "newer"

    def test_of_many_writes_at_one_version_one_holds(self, tree: SessionTreeStub) -> None:
        create(tree, "a")

        writes = [partial(write, tree, pb.Config(system_prompt=f"{n}"), expected_version=0) for n in range(6)]
        with ThreadPoolExecutor(6) as pool:
            reasons = pool.map(reason_of, writes)
        assert sorted(map(str, reasons)) == ["None"] + ["STALE_VERSION"] * 5
        assert read(tree).version == 1

    def test_it_leaves_the_node_and_the_slots_of_the_session_alone(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        made = create(tree, "a")
        storing.put(storage, "a")
        storing.put_system_prompt(storage, "a", "of the session")
        write(tree, pb.Config(system_prompt="frozen"))
        assert get(tree, "a") == made
        slot = storage.GetSystemPrompt(session_pb2.GetSystemPromptRequest(session_id="a"))
        assert (slot.content, slot.version) == ("of the session", 1)

    def test_a_config_must_be_given_though_all_in_it_may_be_absent(self, tree: SessionTreeStub) -> None:
        create(tree, "a", config=pb.Config(system_prompt="kept"))
        with bad_field("config"):
            tree.PutConfig(pb.PutConfigRequest(node_id="a"))
        assert read(tree).system_prompt == "kept"

    def test_unknown_nodes_are_not_found(self, tree: SessionTreeStub) -> None:
        with unknown_node():
            read(tree)
        with unknown_node():
            write(tree, pb.Config())


class TestConfigLimits:
    def test_a_prompt_holds_four_mebibytes(self, tree: SessionTreeStub) -> None:
        prompt = "计" * (4 * MIB // 3) + "x"
        assert len(prompt.encode()) == 4 * MIB
        create(tree, "a", config=pb.Config(system_prompt=prompt))
        assert read(tree).system_prompt == prompt
        with too_large(4 * MIB, names="config.system_prompt"):
            write(tree, pb.Config(system_prompt=prompt + "x"))
        with too_large(4 * MIB, names="config.system_prompt"):
            create(tree, "b", config=pb.Config(system_prompt=prompt + "x"))

    def test_a_thousand_skills_are_kept_in_order_and_one_more_refused(self, tree: SessionTreeStub) -> None:
        names = [f"s{number * 7 % 1000}" for number in range(1000)]
        create(tree, "a", config=pb.Config(skills=pb.Skills(names=names)))
        assert list(read(tree).skills.names) == names
        with too_large(1000, names="config.skills.names"):
            write(tree, pb.Config(skills=pb.Skills(names=[*names, "one-more"])))

    def test_a_skill_has_1_to_256_characters(self, tree: SessionTreeStub) -> None:
        create(tree, "a")
        longest = "技" * 256
        assert list(write(tree, pb.Config(skills=pb.Skills(names=[longest]))).skills.names) == [longest]
        with too_large(256, names="config.skills.names[1]"):
            write(tree, pb.Config(skills=pb.Skills(names=["a", longest + "x"])))
        with bad_field("config.skills.names[0]"):
            write(tree, pb.Config(skills=pb.Skills(names=[""])))

    def test_nul_is_refused(self, tree: SessionTreeStub) -> None:
        """langgraph#1878: NUL gets the same answer on every backend."""
        create(tree, "a")
        with bad_field("config.system_prompt"):
            write(tree, pb.Config(system_prompt="a\x00"))
        with bad_field("config.skills.names[0]"):
            write(tree, pb.Config(skills=pb.Skills(names=["a\x00"])))
        assert read(tree) == pb.Config()
