"""The kinds of fields, and the bad values of each kind."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.bad_input.json_values import JSON, NOT_JSON
from tests.bad_input.writes import Write, add, alone, clear, edit, fill, put, repeat, the_least, the_most

MIB = 1024 * 1024

INVALID = "INVALID_FIELD"
TOO_LARGE = "TOO_LARGE"
BAD_TOKEN = "INVALID_PAGE_TOKEN"


@dataclass(frozen=True)
class Bad:
    """One bad value, and the refusal that it must meet."""

    name: str
    write: Write
    reason: str = INVALID
    at_owner: bool = False
    """Whether the refusal may name the message that holds the field: a limit on all of it was met."""


@dataclass(frozen=True)
class Good:
    """One value at the edge of what is legal."""

    name: str
    write: Write
    may_miss: bool = False
    """Whether it may name nothing, or not be the current one: then another refusal is right."""


@dataclass(frozen=True)
class Kind:
    """What a field means, and how that can be broken."""

    bad: Sequence[Bad] = ()
    good: Sequence[Good] = ()
    other: Write | None = None
    """Puts another legal value in place of the one that is there; None where there is none to try."""
    refers_to: str | None = None
    """The reason that answers an id of this kind which names nothing; None where it need not name anything."""


def _in_field(cases: Iterable[tuple[str, object, str]], how: Callable[[object], Write]) -> list[Bad]:
    return [Bad(name, how(value), reason) for name, value, reason in cases]


_ILLEGAL_IN_ID: list[tuple[str, object, str]] = [
    ("129 characters", "x" * 129, TOO_LARGE),
    ("100,000 characters", "x" * 100_000, TOO_LARGE),
    ("a control character", "a\x01b", INVALID),
    ("a line feed at the end", "a\n", INVALID),
    ("a tab", "a\tb", INVALID),
    ("a delete character", "a\x7fb", INVALID),
    ("a space at the start", " a", INVALID),
    ("a space at the end", "a ", INVALID),
    ("only a space", " ", INVALID),
    ("a NUL", "a\0b", INVALID),
]
_NOT_ASCII: list[tuple[str, object, str]] = [
    ("an accent", "caf\u00e9", INVALID),
    ("a full-width letter", "\uff21", INVALID),
    ("an emoji", "\U0001f600", INVALID),
    ("a no-break space", "a\u00a0", INVALID),
]
_EMPTY: tuple[str, object, str] = ("empty", "", INVALID)

_GOOD_IDS = [
    Good(name, put(value), may_miss=True)
    for name, value in {
        "128 characters": "~" * 128,
        "one character": "!",
        "spaces within": "a  b",
        "a quote": "x') OR 1=1 --",
        "a pattern": "%_*?[a]",
        "a path": "../a/b",
    }.items()
]

_another_id = edit(lambda value: f"{value}-other")


def id_kind(refers_to: str | None) -> Kind:
    """A required id; also one that is absent by presence, where present and empty is no id."""
    return Kind(_in_field([*_ILLEGAL_IN_ID, *_NOT_ASCII, _EMPTY], put), _GOOD_IDS, _another_id, refers_to)


def optional_id_kind(refers_to: str | None = None) -> Kind:
    """An id that may be left empty."""
    return Kind(_in_field([*_ILLEGAL_IN_ID, *_NOT_ASCII], put), _GOOD_IDS, _another_id, refers_to)


def id_list_kind(most: int) -> Kind:
    """A list of 1 to ``most`` ids."""
    bad = [
        *_in_field([*_ILLEGAL_IN_ID, *_NOT_ASCII, _EMPTY], add),
        Bad("none at all", clear),
        Bad(f"{most + 1} entries", fill(lambda index: f"id-{index}", most + 1), TOO_LARGE),
    ]
    good = [
        Good(f"{most} entries", fill(lambda index: f"id-{index}", most)),
        Good("one twice", fill(lambda _: "~" * 128, 2)),
    ]
    return Kind(bad, good, add("other"))


REQUEST_ID = Kind(_in_field([*_ILLEGAL_IN_ID, *_NOT_ASCII], put), _GOOD_IDS)

TAGS = Kind(
    [
        *_in_field([*_ILLEGAL_IN_ID, _EMPTY, ("a C1 control character", "a\x85b", INVALID)], add),
        Bad("65 entries", fill(lambda index: f"tag-{index}", 65), TOO_LARGE),
    ],
    [
        Good("64 of 128 emoji", fill(lambda index: chr(0x1F300 + index) * 128, 64)),
        Good("one twice", fill(lambda _: "tag", 2)),
        Good("two cases", fill(lambda index: "tT"[index], 2)),
        Good("a space within", add("a b")),
    ],
    add("other"),
)


def short_text(most: int, *, required: bool) -> Kind:
    """A line of text with a limit in characters."""
    cases: list[tuple[str, object, str]] = [
        (f"{most + 1} characters", "x" * (most + 1), TOO_LARGE),
        (f"{most + 1} emoji", "\U0001f600" * (most + 1), TOO_LARGE),
        ("100,000 characters", "x" * 100_000, TOO_LARGE),
        ("a NUL", "a\0b", INVALID),
        *([_EMPTY] if required else []),
    ]
    good = [
        Good(f"{most} characters", put("x" * most)),
        Good(f"{most} emoji", put("\U0001f600" * most)),
        Good("control characters", put("\x01\n\x7f\x85")),
        Good("spaces at both ends", put(" a ")),
        Good("what is no character", put("\uffff")),
        Good("a quote", put("x') OR 1=1 --")),
        *([] if required else [Good("empty", put(""))]),
    ]
    return Kind(_in_field(cases, put), good, edit(lambda value: f"{value}-other"))


SKILL_NAMES = Kind(
    [
        *_in_field([("257 characters", "x" * 257, TOO_LARGE), ("a NUL", "a\0b", INVALID), _EMPTY], add),
        Bad("1,001 entries", fill(lambda index: f"skill-{index}", 1001), TOO_LARGE),
    ],
    [
        Good("1,000 of 256 emoji", fill(lambda _: "\U0001f600" * 256, 1000)),
        Good("none at all", clear),
    ],
    add("other"),
)


def text(most_bytes: int, *, required: bool = False, of_owner: bool = False) -> Kind:
    """Text with a limit in bytes; ``of_owner``: the limit is on the whole message that holds it."""
    bad = [
        Bad("a NUL", put("a\0b")),
        Bad("only a NUL", put("\0")),
        Bad("a byte over the limit", put("x" * (most_bytes + 1)), TOO_LARGE, of_owner),
        Bad("a byte over the limit by an emoji", put("x" * (most_bytes - 3) + "\U0001f600"), TOO_LARGE, of_owner),
        *([Bad("absent", clear)] if required else []),
    ]
    good = [
        Good("all that is allowed", alone("x" * most_bytes)),
        Good("all that is allowed in emoji", alone("\U0001f600" * (most_bytes // 4))),
        Good("control characters", put("\x01\r\n\t\x7f\x85\u2028")),
        Good("what is no character", put("\uffff\U0010ffff")),
        Good("empty", put("")),
    ]
    return Kind(bad, good, edit(lambda value: f"{value}-other"))


def json_text(most_bytes: int, *, of_owner: bool = False, levels: int = 64) -> Kind:
    """Text that is one JSON value, with a limit in bytes and one in levels."""
    over = '"' + "x" * (most_bytes - 1) + '"'
    bad = [
        *(Bad(name, put(value), TOO_LARGE if len(value) > most_bytes else INVALID) for name, value in NOT_JSON.items()),
        Bad(f"{levels + 1} levels", put("[" * (levels + 1) + "]" * (levels + 1))),
        Bad("a byte over the limit", put(over), TOO_LARGE, of_owner),
    ]
    good = [Good(name, put(value)) for name, value in JSON.items()]
    good.append(Good(f"{levels} levels", put("[" * levels + "]" * levels)))
    if not of_owner:
        good.append(Good("all that is allowed", put(over[:-2] + '"')))
    return Kind(bad, good, put('{"other": 1}'))


def number(most: int | None = None, *, least: int = 0) -> Kind:
    """A whole number from ``least`` to ``most``."""
    bad = [Bad(f"{least - 1}", put(least - 1)), Bad("the least of its type", the_least)]
    if most is not None:
        bad.append(Bad(f"{most + 1}", put(most + 1)))
    good = [Good(f"{least}", put(least), may_miss=True)]
    good.append(Good("the most", the_most if most is None else put(most), may_miss=True))
    return Kind(bad, good, edit(lambda value: 7 if value != 7 else 8))


_UNKNOWN_NUMBERS = (99, -1, 2**31 - 1)


def enum(*, required: bool = False, other: int) -> Kind:
    """One value of an enum."""
    bad = [Bad(f"unknown number {value}", put(value)) for value in _UNKNOWN_NUMBERS]
    return Kind([*bad, *([Bad("unspecified", put(0))] if required else [])], other=put(other))


def enums(other: int) -> Kind:
    """A list of values of an enum, in which the unspecified one says nothing."""
    return Kind([Bad(f"unknown number {value}", add(value)) for value in (*_UNKNOWN_NUMBERS, 0)], other=add(other))


PAGE_TOKEN = Kind(
    [
        Bad(name, put(value), BAD_TOKEN)
        for name, value in {
            "a word": "token",
            "not base64": "!!!!",
            "not ASCII": "caf\u00e9",
            "a NUL": "a\0b",
            "JSON": '{"after": 1}',
            "base64 of other JSON": "eyJhZnRlciI6MX0",
            "base64 of no JSON": "AAAA",
            "a space": " ",
            "100,000 characters": "A" * 100_000,
        }.items()
    ]
)


def _time(seconds: int, nanos: int) -> Write:
    def write(owner: Message, field: FieldDescriptor) -> str:
        moment = getattr(owner, field.name)
        moment.seconds, moment.nanos = seconds, nanos
        return ""

    return write


TIME = Kind(
    [
        Bad("after the year 9999", _time(253_402_300_800, 0)),
        Bad("before the year 1", _time(-62_135_596_801, 0)),
        Bad("as far as it goes", _time(2**63 - 1, 0)),
        Bad("as far back as it goes", _time(-(2**63), 0)),
        Bad("a whole second of nanoseconds", _time(0, 1_000_000_000)),
        Bad("negative nanoseconds", _time(0, -1)),
    ],
    [
        Good("the first moment", _time(-62_135_596_800, 0)),
        Good("the last moment", _time(253_402_300_799, 999_999_999)),
        Good("before 1970", _time(-1, 999_999_000)),
        Good("the epoch", _time(0, 0)),
        Good("nanoseconds", _time(1_600_000_000, 123_456_789)),
    ],
    _time(1_600_000_000, 0),
)


def _mask(*paths: str) -> Write:
    def write(owner: Message, field: FieldDescriptor) -> str:
        mask = getattr(owner, field.name)
        del mask.paths[:]
        mask.paths.extend(paths)
        return ""

    return write


def mask(known: str) -> Kind:
    """A mask of fields, one of which is ``known``."""
    bad = {
        "an unknown path": "nothing",
        "an output-only field": "status",
        "the id": "id",
        "another case": known.upper(),
        "a path from the request": f"session.{known}",
        "a path within": f"{known}.more",
        "an empty path": "",
        "a NUL": "a\0b",
        "100,000 characters": "x" * 100_000,
    }
    return Kind([Bad(name, _mask(known, path)) for name, path in bad.items()], [Good("all", _mask("*"))], _mask(known))


def _with_unknown_field(owner: Message, field: FieldDescriptor) -> str:
    # Field 999, a string: what a client of a later contract might send, and an older server must not pass over.
    getattr(owner, field.name).MergeFromString(b"\xba\x3e\x01x")
    return ""


FILTER = Kind([Bad("an unknown field", _with_unknown_field)])
"""A filter: what it does not know must not admit everything."""

FLAG = Kind(other=edit(lambda value: not value))
"""Yes or no: nothing bad fits."""

MESSAGE = Kind()
"""A message that is only its fields."""

OUTPUT_ONLY = Kind()
"""What the server sets: ignored where a client sends it."""


def messages(most: int, *, required: bool, other: Write | None = None) -> Kind:
    """A list of messages; it may hold one twice, unless another legal value is given."""
    bad = [Bad(f"{most + 1} entries", repeat(most + 1), TOO_LARGE), *([Bad("none at all", clear)] if required else [])]
    # Those of a record's tool calls must differ, so they come elsewhere.
    good = [] if other is not None else [Good(f"{most} entries", repeat(most))]
    return Kind(bad, good, other or _twice)


def _twice(owner: Message, field: FieldDescriptor) -> str:
    values = getattr(owner, field.name)
    values.add().CopyFrom(values[0])
    return ""


def required_time(other: int) -> Kind:
    """A moment that must be given, with other rules about which it may be."""
    return Kind([*TIME.bad, Bad("absent", clear)], other=_time(other, 0))


def _once_more(owner: Message, field: FieldDescriptor) -> str:
    values = getattr(owner, field.name)
    values.append(values[0])
    return f"[{len(values) - 1}]"


METRICS = Kind(
    [*enums(other=0).bad, Bad("one twice", _once_more), Bad("none at all", clear)],
    # A count of steps stands beside all others of the valid requests, or in place of them.
    other=fill(lambda _: 9, 1),
)
"""Measures, each once."""

PERCENTILES = Kind(
    [
        *(Bad(f"{value}", add(value)) for value in (0.0, -1.0, 100.0, float("nan"), float("inf"), -float("inf"))),
        Bad("6 entries", fill(lambda index: 50.0 + index, 6), TOO_LARGE),
    ],
    [
        Good("5 entries", fill(lambda index: 50.0 + index, 5)),
        Good("one twice", fill(lambda _: 50.0, 2)),
        Good("the least that counts", fill(lambda _: 5e-324, 1)),
        Good("nearly all", fill(lambda _: 99.99999999999999, 1)),
        Good("none at all", clear),
    ],
    fill(lambda _: 75.0, 1),
)
"""Percentiles, of which none and all are no such."""


DURATION = Kind(
    good=[
        Good("a negative one", put(-1)),
        Good("the least of its type", the_least),
        Good("the most of its type", the_most),
        Good("none", put(0)),
    ],
    other=put(7),
)
"""A duration: an impossible one is kept as 0 and flagged."""

PREVIEW = Kind(
    [Bad("a NUL", put("a\0b"))],
    [
        Good("100,000 characters", put("x" * 100_000)),
        Good("600 emoji", put("\U0001f600" * 600)),
        Good("empty", put("")),
    ],
    put("other"),
)
"""The beginning of a text, which is cut and never too long."""


def end_status(other: int) -> Kind:
    """How something ended: no status of what still runs."""
    ends = enum(required=True, other=other)
    return Kind([*ends.bad, *(Bad(f"status {number}", put(number)) for number in (1, 2, 6))], other=ends.other)
