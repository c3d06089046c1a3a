"""How a backend's module takes over whole contracts, one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType

_NOTHING: Mapping[str, str] = {}


def classes_of(*nouns: ModuleType) -> list[type]:
    """The classes of tests that these modules define, in their order."""
    return [
        value
        for noun in nouns
        for name, value in vars(noun).items()
        if name.startswith("Test") and isinstance(value, type) and value.__module__ == noun.__name__
    ]


def collect(
    namespace: dict[str, object], contract: Sequence[type], *, leaving_out: Mapping[str, str] = _NOTHING
) -> None:
    """Put every test class of a contract into a module's namespace, where pytest finds it.

    Parameters
    ----------
    namespace
        The `globals()` of the backend's module, which must define the fixture `backend`.
    contract
        The classes of tests.
    leaving_out
        What a backend cannot keep: `TestClass.test_name` and the reason. A name that is no test is an error, so that no
        exclusion outlives its test.
    """
    unknown = dict(leaving_out)
    for tests in contract:
        out = [name for name in vars(tests) if unknown.pop(f"{tests.__name__}.{name}", None) is not None]
        taken = type(tests.__name__, (tests,), dict.fromkeys(out)) if out else tests
        if namespace.setdefault(tests.__name__, taken) is not taken:
            raise ValueError(f"two classes of tests are named {tests.__name__}")
    if unknown:
        raise ValueError(f"no such tests to leave out: {sorted(unknown)}")
