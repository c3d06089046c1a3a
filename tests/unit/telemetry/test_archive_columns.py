"""An archive tells every column but those that mean something in one database only."""

from collections.abc import Mapping

import pytest
from sqlalchemy import Table

from ramet_server.database.tables import telemetry as tables
from ramet_server.domain.errors import InvalidField
from telemetry.rules.archiving import columns
from telemetry.rules.archiving.columns import Field, Holds, read_row

TOLD = [
    (tables.diagnosis_session, columns.DIAGNOSIS),
    (tables.agent_step, columns.STEP),
    (tables.tool_invocation, columns.TOOL),
    (tables.diagnosis_feedback, columns.FEEDBACK),
]


@pytest.mark.parametrize(("table", "fields"), TOLD)
def test_every_column_is_told(table: Table, fields: Mapping[str, Field]) -> None:
    assert set(fields) == {column.name for column in table.c} - {"id", "space_id", "step_id"}
    for name, field in fields.items():
        assert field.optional == bool(table.c[name].nullable), name


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"value": "lovely"}, "value"),
        ({"updated_at": "yesterday"}, "updated_at"),
        ({"source": " "}, "source"),
        ({"comment": None}, "comment"),
        ({"comment": "\0"}, "comment"),
        ({"wonder": 1}, "wonder"),
    ],
)
def test_what_no_server_could_have_stored_is_refused(change: Mapping[str, object], field: str) -> None:
    good = {
        "session_id": "d",
        "source": "user",
        "value": "useful",
        "updated_at": "2026-11-30T22:00:00.000000Z",
        "event_id": "e",
        "comment": "",
    }
    assert read_row(columns.FEEDBACK, good)["value"] == "useful"
    with pytest.raises(InvalidField) as caught:
        read_row(columns.FEEDBACK, {**good, **change})
    assert caught.value.field == field


@pytest.mark.parametrize("stamps", ["{", "7", "[7]", '[["a",1,1,"e","status"]]', '[[1,1,1,"e",2]]'])
def test_stamps_that_cannot_be_read_are_refused(stamps: str) -> None:
    assert columns.DIAGNOSIS["merged_from"].holds is Holds.STAMPS
    assert columns.DIAGNOSIS["merged_from"].read('[[1,1,1,"e","status"]]', "merged_from")
    with pytest.raises(InvalidField):
        columns.DIAGNOSIS["merged_from"].read(stamps, "merged_from")
