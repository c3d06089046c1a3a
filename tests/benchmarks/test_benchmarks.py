"""The benchmarks can be run: their table is whole, and a case of it is measured."""

import json
from pathlib import Path

import pytest

from benchmarks import parts, report
from benchmarks.__main__ import Run
from benchmarks.cases import CASES, Case, Ratio, at_least, at_most
from benchmarks.comparing import Sample, Side, compare
from benchmarks.stand import BACKENDS, Stand


def test_no_name_of_a_case_is_given_twice() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_can_be_measured_on_its_backends(case: Case) -> None:
    assert set(case.backends) <= set(BACKENDS)
    # Nothing is started before a work is called.
    with Stand("sqlite") as stand:
        assert case.work in parts.works_of(case.part)(stand)


def test_a_case_is_measured_beside_its_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = next(case for case in CASES if case.name == "append, 1 in flight")
    run = Run(rounds=1, seconds=0.2)
    run.go_through("sqlite", [case])
    assert run.failed == 0
    told = capsys.readouterr().out
    assert "| append, 1 in flight | Ramet / bare append | **" in told
    report.write(tmp_path / "run.json", tmp_path / "run.md", run.about(), run.outcomes)
    [entry] = json.loads((tmp_path / "run.json").read_text())["results"]["sqlite"]
    assert entry["ratios"][0]["bar"] == "≥ 0.75"
    assert {"server", "client"} <= entry["sides"]["Ramet"]["cpu_us"].keys()
    assert "| append, 1 in flight | bare echo |" in (tmp_path / "run.md").read_text()


def test_a_case_that_cannot_be_measured_is_told_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    case = next(case for case in CASES if case.part == "driver")
    run = Run(rounds=1, seconds=0.01)
    run.go_through("sqlite", [Case("impossible", "driver", "no such work"), case])
    assert run.failed == 1
    assert [outcome.case for outcome in run.outcomes["sqlite"]] == [case]
    assert "| impossible | **failed to run** |" in capsys.readouterr().out


def test_a_ratio_is_the_median_of_those_within_a_round_and_a_missed_bar_is_told() -> None:
    ours, theirs = iter([10.0, 30.0, 20.0]), iter([20.0, 40.0, 100.0])
    sides = [Side("ours", lambda: Sample(next(ours))), Side("theirs", lambda: Sample(next(theirs)))]
    ratios = (Ratio("ours", "theirs", at_least(0.6)), Ratio("ours", "theirs", at_most(0.5)))
    outcome = compare(Case("both", "wire", "append", ratios=ratios), sides, 3)
    assert [(spread.least, spread.median, spread.most) for _, spread in outcome.ratios] == [(0.2, 0.5, 0.75)] * 2
    assert report.lines(outcome)[2:] == [
        "| both | ours / theirs | **0.50** | 0.2 to 0.75 | ≥ 0.6 **missed** |  |",
        "| both | ours / theirs | **0.50** | 0.2 to 0.75 | ≤ 0.5 reached |  |",
    ]
    assert report.count_bars([outcome]) == (1, 2)
