"""Ids, labels and text: what is stored is exactly what was given, or nothing."""

import pytest

from ramet_server.domain.errors import InvalidArgument, InvalidField, TooLarge
from ramet_server.domain.ids import check_id, check_optional_id, new_id, new_origin
from ramet_server.domain.text import check_label, check_text, utf8_size


@pytest.mark.parametrize("value", ["a", "~", "!", "a b", "Abc", "x" * 128, "../../etc", "x') OR 1=1 --"])
def test_printable_ascii_is_an_id(value: str) -> None:
    assert check_id(value, "id") == value


@pytest.mark.parametrize("value", ["", " a", "a ", " ", "a\tb", "a\n", "\x7f", "é", "a\u00a0b", "你", "a\0b"])
def test_other_text_is_no_id(value: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        check_id(value, "session_id")
    assert refusal.value.field == "session_id"


@pytest.mark.parametrize("length", [129, 150, 255, 300, 100_000])
def test_a_longer_id_names_its_limit(length: int) -> None:
    with pytest.raises(TooLarge) as refusal:
        check_id("x" * length, "id")
    assert (refusal.value.field, refusal.value.details) == ("id", {"limit": "128", "unit": "characters"})


def test_the_empty_text_is_an_absent_optional_id() -> None:
    assert check_optional_id("", "parent_id") is None
    assert check_optional_id("main", "parent_id") == "main"
    with pytest.raises(InvalidArgument):
        check_optional_id(" ", "parent_id")


def test_new_ids_are_legal_distinct_and_in_order_of_time() -> None:
    ids = [new_id() for _ in range(2000)]
    assert len(set(ids)) == len(ids)
    assert all(len(value) == 32 and check_id(value, "id") for value in ids)
    # Twelve digits are the milliseconds.
    assert [value[:12] for value in ids] == sorted(value[:12] for value in ids)
    assert ids[0][12] == "7"
    assert len(new_origin()) == 32


def test_a_label_has_at_most_256_characters_of_any_script() -> None:
    assert check_label("😀" * 256, "label") == "😀" * 256
    assert check_label("", "label") == ""
    with pytest.raises(TooLarge) as refusal:
        check_label("a" * 257, "label")
    assert refusal.value.details == {"limit": "256", "unit": "characters"}


def test_text_is_bounded_in_bytes_of_utf8() -> None:
    assert check_text("ab", "content", 2) == "ab"
    assert check_text("é", "content", 2) == "é"
    for text in ("abc", "éa", "😀"):
        with pytest.raises(TooLarge) as refusal:
            check_text(text, "content", 2)
        assert refusal.value.details == {"limit": "2", "unit": "bytes"}


@pytest.mark.parametrize("value", ["a\0", "\ud800", "a\udfffb"])
def test_nul_and_lone_surrogates_are_refused(value: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        check_label(value, "label")
    assert refusal.value.field == "label"
    with pytest.raises(InvalidField) as refusal:
        check_text(value, "content", 100)
    assert refusal.value.field == "content"


def test_size_is_counted_in_bytes_of_utf8() -> None:
    assert [utf8_size(text) for text in ("", "abc", "é", "你", "😀")] == [0, 3, 2, 3, 4]
