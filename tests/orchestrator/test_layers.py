"""Config by layers: defaults, the source's frozen config, a profile, options; later wins, absent never overrides."""

from collections.abc import Mapping
from typing import Any

import pytest

import ramet
from ramet import Client, Orchestrator
from ramet.orchestrator import Profile, PromptMode, Runtime, SessionDefaults, Split
from tests.orchestrator.scripted import model

LAYERS = {"system_prompt": "default", "skills": ["d"]}


@pytest.mark.parametrize(
    ("mode", "option", "joined"),
    [
        (PromptMode.PRESET, "mine", "preset"),
        (PromptMode.PREPEND, "mine", "preset\n\nmine"),
        (PromptMode.APPEND, "mine", "mine\n\npreset"),
        (PromptMode.PREPEND, None, "preset"),
        (PromptMode.APPEND, None, "preset"),
    ],
)
async def test_a_profiles_prompt_and_the_options_are_joined_by_its_mode(
    client: Client, mode: PromptMode, option: str | None, joined: str
) -> None:
    orchestrator = Orchestrator(client, profiles={"expert": Profile("preset", mode=mode)})
    root = await orchestrator.create_root(system_prompt="frozen")
    fork = await orchestrator.fork(root.id, profile="expert", system_prompt=option)
    assert (await client.tree.get_config(fork.id)).system_prompt == joined
    assert (await client.sessions.get_system_prompt(fork.id)).content == joined


@pytest.mark.parametrize(
    ("frozen", "profile", "option", "expected"),
    [
        (None, None, None, ("d",)),
        (["f"], None, None, ("f",)),
        (["f"], ["p"], None, ("p",)),
        (["f"], [], None, ()),
        (["f"], ["p"], ["o"], ("o",)),
        (["f"], ["p"], [], ()),
        ([], None, None, ()),
    ],
)
async def test_skills_are_replaced_whole_and_empty_means_none(
    client: Client,
    frozen: list[str] | None,
    profile: list[str] | None,
    option: list[str] | None,
    expected: tuple[str, ...],
) -> None:
    source = await Orchestrator(client).create_root(skills=frozen)
    orchestrator = Orchestrator(client, defaults=SessionDefaults(skills=["d"]), profiles={"p": Profile(skills=profile)})
    fork = await orchestrator.fork(source.id, profile="p", skills=option)
    assert (await client.tree.get_config(fork.id)).skills == expected


async def test_where_neither_profile_nor_option_has_a_prompt_the_lower_layers_give_it(client: Client) -> None:
    orchestrator = Orchestrator(
        client, defaults=SessionDefaults(system_prompt="default"), profiles={"p": Profile(skills=["x"])}
    )
    plain = await Orchestrator(client).create_root()
    frozen = await Orchestrator(client).create_root(system_prompt="frozen")
    for source, expected in ((plain, "default"), (frozen, "frozen")):
        fork = await orchestrator.fork(source.id, profile="p")
        assert (await client.tree.get_config(fork.id)).system_prompt == expected


async def test_a_prompt_may_be_a_function_of_variables(client: Client) -> None:
    async def prompt(variables: Mapping[str, Any]) -> str:
        return f"You know {variables['topic']}."

    orchestrator = Orchestrator(client, profiles={"expert": Profile(prompt)})
    root = await orchestrator.create_root()
    fork = await orchestrator.fork(root.id, profile="expert", profile_vars={"topic": "mosses"})
    assert (await client.sessions.get_system_prompt(fork.id)).content == "You know mosses."


async def test_an_unregistered_profile_is_refused_before_anything_is_made(client: Client) -> None:
    orchestrator = Orchestrator(client, profiles={"expert": Profile("x")})
    root = await orchestrator.create_root()
    with pytest.raises(ramet.InvalidArgument, match="registered: expert") as refused:
        await orchestrator.fork(root.id, profile="exprt")
    assert refused.value.reason == "UNKNOWN_PROFILE"
    assert (await client.tree.get_node(root.id)).child_count == 0


@pytest.mark.parametrize("verdict", [False, "enough forks"])
async def test_a_guard_may_refuse_a_split_before_anything_is_made(client: Client, verdict: bool | str) -> None:
    asked: list[Split] = []

    def guard(split: Split) -> bool | str:
        asked.append(split)
        return verdict if split.label == "bad" else True

    orchestrator = Orchestrator(client, guard=guard)
    root = await orchestrator.create_root()
    with pytest.raises(ramet.FailedPrecondition, match=r"enough forks|refuses") as refused:
        await orchestrator.fork(root.id, label="bad")
    assert refused.value.reason == "FORK_REFUSED"
    assert (await client.tree.get_node(root.id)).child_count == 0
    await orchestrator.fork(root.id, label="good")
    assert [(split.source_id, split.topology_parent, split.label) for split in asked] == [
        (root.id, root.id, "bad"),
        (root.id, root.id, "good"),
    ]


async def test_what_runs_a_session_comes_of_layers_too(client: Client) -> None:
    default, expert, own = model("default"), model("expert"), model("own")
    orchestrator = Orchestrator(
        client,
        defaults=SessionDefaults(runtime=Runtime(llm=default, max_rounds=3)),
        profiles={"expert": Profile(runtime=Runtime(llm=expert))},
    )
    root = await orchestrator.create_root()
    fork = await orchestrator.fork(root.id, profile="expert")
    assert (await orchestrator.session(root.id).send("hi")).text == "default"
    assert (await orchestrator.session(fork.id).send("hi")).text == "expert"
    assert orchestrator.session(fork.id).runtime.max_rounds == 3
    assert (await orchestrator.session(fork.id, runtime=Runtime(llm=own)).send("hi")).text == "own"
    # What is not frozen is of this process: another orchestrator has to be told.
    assert Orchestrator(client).session(fork.id).runtime.llm is None
