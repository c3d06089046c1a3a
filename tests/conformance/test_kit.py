"""The kit itself: nothing of it is forgotten, and nothing is left out in silence."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

from tests.conformance.collecting import classes_of, collect


@pytest.mark.parametrize("contract", ["session", "tree", "telemetry"])
def test_every_class_of_tests_is_part_of_its_contract(contract: str) -> None:
    folder = Path(__file__).parent / contract
    package = f"tests.conformance.{contract}"
    modules = [importlib.import_module(f"{package}.{found.name}") for found in pkgutil.iter_modules([str(folder)])]
    assert len(modules) > 9
    written = {tests for module in modules for tests in classes_of(module)}
    assert written == set(importlib.import_module(f"{package}.contract").CONTRACT)


class TestExample:
    def test_one(self) -> None:
        """Stands for a test of a contract."""


def test_what_is_left_out_must_be_a_test() -> None:
    with pytest.raises(ValueError, match="no such tests"):
        collect({}, [TestExample], leaving_out={"TestExample.test_two": "it was renamed"})


def test_what_is_left_out_is_not_collected() -> None:
    namespace: dict[str, object] = {}
    collect(namespace, [TestExample], leaving_out={"TestExample.test_one": "this backend cannot"})
    assert getattr(namespace["TestExample"], "test_one", None) is None


def test_two_classes_of_one_name_are_an_error() -> None:
    namespace: dict[str, object] = {"TestExample": object()}
    with pytest.raises(ValueError, match="two classes"):
        collect(namespace, [TestExample])
