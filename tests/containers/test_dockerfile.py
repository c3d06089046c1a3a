"""The Dockerfile agrees with the code. No engine builds it here: its words are held against what they name."""

import shlex
import tomllib

from ramet_server.database.engine import parse_url
from tests.containers.commands import PROGRAM, check_command, check_settings, port_of
from tests.containers.dockerfile import ROOT, admitted, environment, only, stages

BUILD, FINAL = stages()


def test_it_starts_a_command_that_exists() -> None:
    assert only(FINAL, "ENTRYPOINT").exec_form() == [PROGRAM]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert PROGRAM in project["scripts"]
    check_command(only(FINAL, "CMD").exec_form())


def test_its_health_check_is_a_command_that_exists() -> None:
    program, *arguments = only(FINAL, "HEALTHCHECK").exec_form()
    assert program == PROGRAM
    assert check_command(arguments).name == "health"


def test_its_variables_are_settings() -> None:
    variables = environment(FINAL)
    check_settings(variables)
    assert port_of(variables["RAMET_LISTEN"]) == int(only(FINAL, "EXPOSE").text)


def test_its_database_is_in_the_volume_of_its_user() -> None:
    volume = only(FINAL, "VOLUME").text
    database = parse_url(environment(FINAL)["RAMET_DATABASE_URL"]).database
    assert database is not None
    assert database.rpartition("/")[0] == volume
    prepared = only(FINAL, "RUN").text
    user = only(FINAL, "USER").text
    assert user != "0"
    assert f"--uid {user} " in prepared
    assert f"--owner=ramet {volume}" in prepared


def test_both_stages_use_the_same_python() -> None:
    bases = [stage[0].text.split()[0] for stage in (BUILD, FINAL)]
    assert bases == ["python:3.11-slim"] * 2


def test_what_it_copies_is_there_and_admitted() -> None:
    copied = [path for each in BUILD if each.name == "COPY" for path in shlex.split(each.text)[:-1]]
    assert sorted(copied) == sorted(admitted())
    for path in copied:
        assert (ROOT / path).exists(), path


def test_it_brings_everything_that_the_wheels_are_made_of() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    named = {*packages, project["project"]["readme"], *project["project"]["license-files"], "clients/python"}
    assert named <= set(admitted())
    assert only(FINAL, "COPY").text == "--from=build /opt/ramet /opt/ramet"
    assert environment(FINAL)["PATH"].startswith("/opt/ramet/bin:")
