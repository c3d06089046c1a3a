"""The program ``ramet-server`` as an operator meets it: start, refusals, signals, logs."""

import asyncio
import json
import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner, Result

from ramet.tree.v1 import tree_pb2, tree_pb2_grpc
from ramet_server.commands import main
from ramet_server.commands.ask_health import SERVICES
from ramet_server.commands.services import ALL
from tests.harness.mariadb import MariaDb
from tests.harness.server import PROGRAM, ServerProcess
from tests.harness.waiting import wait_until
from tests.serving.conftest import method_of, reason_of
from tests.serving.echo_program import COMMAND
from tests.serving.echo_service import Text


def run(*arguments: str, **settings: str) -> Result:
    """Runs a command to its end, in this process since a new one takes a second to load."""
    clean: dict[str, str | None] = {name: None for name in os.environ if name.startswith("RAMET_")}
    return CliRunner().invoke(main, arguments, env=clean | settings)


def assert_refused(done: Result, words: str) -> None:
    """Checks that a start was refused with one clear line."""
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == 1
    lines = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, done.stderr
    assert words in lines[0]
    assert "Listening" not in done.stdout


def test_start_prints_address_settings_and_a_line_to_try(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, {"RAMET_DATABASE_URL": f"sqlite:///{tmp_path}/ramet.db"}) as server:
        assert server.terminate() == 0
    text = server.output
    assert f"RAMET_DATABASE_URL=sqlite+pysqlite:///{tmp_path}/ramet.db" in text
    assert "RAMET_POOL_SIZE=8" in text
    assert f"Listening on {server.address}" in text
    assert "Try: grpcurl -plaintext -d '" in text
    assert f" {server.address} ramet." in text


def test_password_is_never_printed(tmp_path: Path, mariadb_url: str) -> None:
    url = mariadb_url.replace("root@", "root:hunter2@")
    for form in ("text", "json"):
        done = subprocess.Popen(
            [PROGRAM, "tree", "--database-url", url, "--listen", "127.0.0.1:0", "--log-format", form],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with done:
            assert done.stdout is not None
            seen = ""
            while "Listening" not in seen:
                line = done.stdout.readline()
                assert line, seen
                seen += line
            done.terminate()
            seen += done.stdout.read()
        assert done.returncode == 0
        assert "hunter2" not in seen


@pytest.mark.parametrize("url", ["postgresql://u:pw@h/d", "nonsense", "mysql://u@h", "sqlite://", "mysql://u:pw@h:x/d"])
def test_bad_url_refuses_the_start(url: str) -> None:
    for command in ("all", "migrate"):
        done = run(command, RAMET_DATABASE_URL=url)
        assert_refused(done, "database")
        assert "pw" not in done.stderr


def test_file_that_cannot_be_used_refuses_the_start(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is a text and no database, however long one looks at it.")
    for path, words in (("missing/ramet.db", "unable to open database file"), ("text.db", "file is not a database")):
        assert_refused(run("tree", "--listen", "127.0.0.1:0", RAMET_DATABASE_URL=f"sqlite:///{tmp_path}/{path}"), words)


def test_port_in_use_refuses_the_start_without_a_traceback(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [str(PROGRAM), "tree", "--listen", listen, "--database-url", f"sqlite:///{tmp_path}/ramet.db"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: Cannot listen on {listen}: Address already in use.\n"


def test_bad_setting_is_a_usage_error_that_names_flag_and_variable() -> None:
    done = run("all", RAMET_POOL_SIZE="none")
    assert done.exit_code == 2
    assert "--pool-size" in done.stderr
    assert "RAMET_POOL_SIZE" in done.stderr


def test_migrate_tells_from_where_to_where(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ramet.db"
    first, second = run("migrate", "--database-url", url), run("migrate", "--database-url", url)
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert first.stdout.startswith("The schema went from revision none to ")
    assert second.stdout.startswith("The schema is at revision ")


def test_five_servers_that_start_at_once_on_an_empty_database_all_become_healthy(
    tmp_path: Path, database_url: str
) -> None:
    folders = [tmp_path / str(number) for number in range(5)]
    for folder in folders:
        folder.mkdir()
    servers = [ServerProcess(folder, {"RAMET_DATABASE_URL": database_url}) for folder in folders]
    try:
        with ThreadPoolExecutor(5) as threads:
            list(threads.map(ServerProcess.start, servers))
        for server in servers:
            # It listens once it looked at its database, be it that it must look again.
            wait_until(partial(_serves, server), "a server is healthy")
        assert [server.terminate() for server in servers] == [0] * 5
    finally:
        for server in servers:
            server.kill()


def _serves(server: ServerProcess) -> bool:
    answer = run("health", "--address", server.address)
    assert (answer.stdout, answer.exit_code) in (("SERVING\n", 0), ("NOT_SERVING\n", 1))
    return answer.exit_code == 0


@pytest.mark.mariadb
async def test_database_server_that_comes_late_is_waited_for_and_one_that_goes_is_noticed(tmp_path: Path) -> None:
    with MariaDb() as database:
        url = database.new_database()
        database.stop()
        with ServerProcess(tmp_path, {"RAMET_DATABASE_URL": url}) as server:
            health = run("health", "--address", server.address)
            assert (health.stdout, health.exit_code) == ("NOT_SERVING\n", 1)
            assert run("health", "--address", server.address, "--alive").exit_code == 0
            async with grpc.aio.insecure_channel(server.address) as channel:
                tree = tree_pb2_grpc.SessionTreeStub(channel)
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await tree.ListRoots(tree_pb2.ListRootsRequest())
                assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
                assert reason_of(caught.value) == "DATABASE_UNAVAILABLE"
                watch = _watch_health(channel)
                assert (await watch.read()) == b"\x08\x02"
                database.start()
                assert (await asyncio.wait_for(watch.read(), 30)) == b"\x08\x01"
                await tree.ListRoots(tree_pb2.ListRootsRequest())
                database.stop(kill=True)
                assert (await asyncio.wait_for(watch.read(), 30)) == b"\x08\x02"
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await tree.ListRoots(tree_pb2.ListRootsRequest())
                assert reason_of(caught.value) == "DATABASE_UNAVAILABLE"
                database.start()
                assert (await asyncio.wait_for(watch.read(), 30)) == b"\x08\x01"
                await tree.ListRoots(tree_pb2.ListRootsRequest())
                watch.cancel()
            assert server.terminate() == 0


def _watch_health(channel: grpc.aio.Channel) -> "grpc.aio.UnaryStreamCall[bytes, bytes]":
    watch: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream("/grpc.health.v1.Health/Watch")
    return watch(b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_lets_the_call_in_flight_finish_and_ends_with_zero(tmp_path: Path, number: int) -> None:
    os.mkfifo(tmp_path / "entered")
    os.mkfifo(tmp_path / "go")
    settings = {"RAMET_DATABASE_URL": f"sqlite:///{tmp_path}/ramet.db"}
    with ServerProcess(tmp_path, settings, (*COMMAND, tmp_path)) as server:
        async with grpc.aio.insecure_channel(server.address) as channel:
            flying = asyncio.ensure_future(method_of(channel, "Say")(Text(text="hi")))
            assert await asyncio.to_thread((tmp_path / "entered").read_text) == "hi"
            server.process.send_signal(number)
            await _until_refused(server.address)
            assert not flying.done()
            await asyncio.to_thread((tmp_path / "go").write_text, "")
            assert (await flying).text == "hi"
        assert await asyncio.to_thread(server.wait) == 0


async def _until_refused(address: str) -> None:
    """Returns once new calls are refused."""
    while True:
        async with grpc.aio.insecure_channel(address) as channel:
            try:
                await method_of(channel, "SayAsync")(Text(), timeout=5)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    return


async def test_second_signal_ends_the_program_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "entered")
    os.mkfifo(tmp_path / "go")
    settings = {"RAMET_DATABASE_URL": f"sqlite:///{tmp_path}/ramet.db"}
    with ServerProcess(tmp_path, settings, (*COMMAND, tmp_path)) as server:
        async with grpc.aio.insecure_channel(server.address) as channel:
            flying = asyncio.ensure_future(method_of(channel, "Say")(Text(text="hi")))
            assert await asyncio.to_thread((tmp_path / "entered").read_text) == "hi"
            server.process.send_signal(signal.SIGTERM)
            await _until_refused(server.address)
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(grpc.aio.AioRpcError):
                await flying
        assert await asyncio.to_thread(server.wait) == 0


async def test_json_logs_are_one_object_a_line_with_the_call_and_no_content(tmp_path: Path) -> None:
    settings = {"RAMET_DATABASE_URL": f"sqlite:///{tmp_path}/ramet.db", "RAMET_LOG_FORMAT": "json"}
    with ServerProcess(tmp_path, settings) as server:
        async with grpc.aio.insecure_channel(server.address) as channel:
            tree = tree_pb2_grpc.SessionTreeStub(channel)
            await tree.CreateSession(
                tree_pb2.CreateSessionRequest(label="private"),
                metadata=(("x-request-id", "call 7"),),
            )
        assert await asyncio.to_thread(server.terminate) == 0
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    (line,) = [line for line in lines if line.get("call") == "call 7"]
    assert line["method"] == "ramet.tree.v1.SessionTree/CreateSession"
    assert (line["code"], line["space"], line["level"]) == ("OK", "default", "INFO")
    assert line["ms"] > 0
    assert "private" not in server.log.read_text()
    assert json.loads(server.output.splitlines()[0])["message"] == "Listening"


def test_health_knows_every_service_by_its_command() -> None:
    assert {each.name: each.descriptor.full_name for each in ALL} == SERVICES


def test_help_tells_every_command() -> None:
    done = run("--help")
    for name in ("all", "session", "tree", "migrate", "health"):
        assert f"\n  {name} " in done.stdout
        assert run(name, "--help").exit_code == 0
    assert run("nothing").exit_code == 2
