"""Of no kind of server is anything lost."""

from pathlib import Path

from tests.recorder import outcomes


def test_nothing_is_lost_whatever_the_server_does(tmp_path: Path) -> None:
    measured = outcomes.measure(2000, tmp_path)
    assert {name: outcomes.lost(2000, report) for name, (report, _) in measured.items()} == dict.fromkeys(measured, 0)
    assert {name: report.dropped for name, (report, _) in measured.items()} == dict.fromkeys(measured, 0)
    report, arrived = measured["restarted twice"]
    assert (report.acked, arrived) == (2000, 2000)
