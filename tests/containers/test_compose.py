"""docker-compose.yml follows the Compose Specification and agrees with the code.

The loader that Docker Compose is built on reads it, against the schema of the specification. No engine runs it here.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ramet_server.commands.services import ALL
from ramet_server.database.engine import parse_url
from ramet_server.serving.settings import Settings
from tests.containers.commands import PROGRAM, check_command, check_settings, port_of
from tests.containers.dockerfile import ROOT, only, stages

pytestmark = pytest.mark.compose

_LOADER = ROOT / ".tools" / "bin" / "compose-spec"


def _load(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert _LOADER.exists(), "compose-spec is missing: run `make tools`"
    command = [str(_LOADER), "-format", "json", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _services(*arguments: str) -> dict[str, dict[str, Any]]:
    done = _load(*arguments, "docker-compose.yml")
    assert done.returncode == 0, done.stderr
    loaded: dict[str, dict[str, Any]] = json.loads(done.stdout)["services"]
    return loaded


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    """The services of the file, with the defaults filled in."""
    return _services()


@pytest.fixture(scope="module")
def ours(services: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Those that run our image."""
    return {name: service for name, service in services.items() if service["image"] == PROGRAM}


def test_the_loader_refuses_what_the_specification_does_not_know(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("services: {one: {image: any, depends_on: {two: {condition: service_happy}}}}\n")
    assert _load(str(wrong)).returncode != 0


def test_every_service_has_a_container_of_its_own(ours: dict[str, dict[str, Any]]) -> None:
    assert {name: service["command"] for name, service in ours.items() if name != "migrate"} == {
        each.name: [each.name] for each in ALL
    }


def test_commands_and_variables_exist(ours: dict[str, dict[str, Any]]) -> None:
    for name, service in ours.items():
        assert check_command(service["command"]).name == name
        check_settings(service["environment"])
        assert service["build"] == {"context": str(ROOT), "dockerfile": "Dockerfile"}


def test_health_checks_ask_for_the_service_of_their_container(ours: dict[str, dict[str, Any]]) -> None:
    for each in ALL:
        shell, program, *arguments = ours[each.name]["healthcheck"]["test"]
        assert (shell, program) == ("CMD", PROGRAM)
        assert check_command(arguments).name == "health"
        assert arguments[arguments.index("--service") + 1] == each.name
    assert ours["migrate"]["healthcheck"] == {"disable": True}


def test_containers_listen_on_the_port_that_is_published(ours: dict[str, dict[str, Any]]) -> None:
    published = []
    exposed = int(only(stages()[-1], "EXPOSE").text)
    for each in ALL:
        (port,) = ours[each.name]["ports"]
        assert port["target"] == port_of(ours[each.name]["environment"]["RAMET_LISTEN"]) == exposed
        published.append(port["published"])
    assert len(set(published)) == len(ALL)


def test_containers_get_the_time_to_drain(ours: dict[str, dict[str, Any]]) -> None:
    settings = Settings()
    for service in ours.values():
        assert (
            float(service["stop_grace_period"].removesuffix("s")) > settings.grace_seconds + settings.lame_duck_seconds
        )


def test_the_schema_comes_after_the_database_and_before_the_services(services: dict[str, dict[str, Any]]) -> None:
    waits = {
        name: {other: wait["condition"] for other, wait in service.get("depends_on", {}).items()}
        for name, service in services.items()
    }
    assert waits == {
        "database": {},
        "migrate": {"database": "service_healthy"},
        **{each.name: {"migrate": "service_completed_successfully"} for each in ALL},
    }
    assert services["migrate"]["restart"] == "no"


def test_the_database_url_names_the_database_that_is_made(services: dict[str, dict[str, Any]]) -> None:
    made = services["database"]["environment"]
    for name in ("migrate", *(each.name for each in ALL)):
        url = parse_url(services[name]["environment"]["RAMET_DATABASE_URL"])
        assert (url.host, url.port) == ("database", 3306)
        assert (url.database, url.username) == (made["MYSQL_DATABASE"], made["MYSQL_USER"])
        assert url.password == made["MYSQL_PASSWORD"]
    assert services["database"]["image"] == "mysql:8.4"


def test_one_variable_sets_the_password_on_both_sides() -> None:
    services = _services("-no-interpolation")
    password = services["database"]["environment"]["MYSQL_PASSWORD"]
    assert password.startswith("${RAMET_DATABASE_PASSWORD")
    for name in ("migrate", *(each.name for each in ALL)):
        assert f":{password}@" in services[name]["environment"]["RAMET_DATABASE_URL"]
