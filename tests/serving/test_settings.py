"""Settings: from flags and environment, and how they are shown."""

from dataclasses import fields
from typing import Any

import click
import pytest
from click.testing import CliRunner

from ramet_server.domain.limits import Limits
from ramet_server.serving.settings import Settings, environment_names, settings_from, settings_options


@click.command()
@settings_options()
def show(**values: Any) -> None:
    for name, value in settings_from(values).shown().items():
        click.echo(f"{name}={value}")


def _run(*arguments: str, **environment: str) -> dict[str, str]:
    done = CliRunner().invoke(show, arguments, env=environment)
    assert done.exit_code == 0, done.output
    return dict(line.split("=", 1) for line in done.output.splitlines())


def test_every_setting_has_a_flag_an_environment_variable_and_its_default() -> None:
    shown = _run()
    assert list(shown) == environment_names()
    for each in fields(Settings):
        if each.name != "database_url":
            assert shown[f"RAMET_{each.name.upper()}"] == str(each.default)


def test_flag_wins_over_environment_and_environment_over_default() -> None:
    assert _run(RAMET_POOL_SIZE="3")["RAMET_POOL_SIZE"] == "3"
    assert _run("--pool-size", "5", RAMET_POOL_SIZE="3")["RAMET_POOL_SIZE"] == "5"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RAMET_POOL_SIZE", "0"),
        ("RAMET_QUEUE_SIZE", "-1"),
        ("RAMET_GRACE_SECONDS", "soon"),
        ("RAMET_LOG_FORMAT", "xml"),
        ("RAMET_MAX_MESSAGE_BYTES", "10"),
    ],
)
def test_bad_value_is_refused_naming_the_variable(name: str, value: str) -> None:
    done = CliRunner().invoke(show, env={name: value})
    assert done.exit_code == 2
    assert name in done.output


def test_password_is_not_shown() -> None:
    shown = _run("--database-url", "mysql://user:hunter2@127.0.0.1/ramet")["RAMET_DATABASE_URL"]
    assert "hunter2" not in shown
    assert "user" in shown


def test_limits_follow_the_settings() -> None:
    limits = Settings(request_id_hours=3, await_content_seconds=5).limits()
    assert limits == Limits(request_id_hours=3, await_content_seconds=5)
