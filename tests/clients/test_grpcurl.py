"""The real grpcurl reaches every RPC by reflection alone."""

import json
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.clients.calls import ExampleCall, differences, example_calls

_GRPCURL = Path(__file__).parents[2] / ".tools" / "bin" / "grpcurl"
# grpcurl prints the code of a refusal by its Go name, and adds 64 to its number for the exit status.
_CODES = {code.name: code.value[0] for code in grpc.StatusCode}

pytestmark = pytest.mark.grpcurl


def _grpcurl(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert _GRPCURL.exists(), "grpcurl is missing: run `make tools`"
    return subprocess.run([_GRPCURL, "-plaintext", *arguments], capture_output=True, text=True, timeout=30, check=False)


def _messages(printed: str) -> list[dict[str, Any]]:
    """Parses the JSON texts that follow each other in the output."""
    decoder, messages = json.JSONDecoder(), []
    printed = printed.strip()
    while printed:
        message, end = decoder.raw_decode(printed)
        messages.append(message)
        printed = printed[end:].lstrip()
    return messages


def _problems(call: ExampleCall, done: subprocess.CompletedProcess[str]) -> list[str]:
    if call.refused is None:
        if done.returncode:
            return [f"{call.method}: {done.stderr}"]
        return differences(call.expected(), _messages(done.stdout), call.method)
    wanted = 64 + _CODES[call.refused["code"]]
    if done.returncode != wanted or call.refused["reason"] not in done.stderr:
        return [f"{call.method}: exit {done.returncode}, not {wanted}: {done.stderr}"]
    return []


def test_grpcurl_lists_the_services(served_address: str) -> None:
    listed = _grpcurl(served_address, "list")
    assert listed.returncode == 0, listed.stderr
    assert {"ramet.session.v1.SessionStorage", "ramet.tree.v1.SessionTree", "ramet.telemetry.v1.Telemetry"} <= set(
        listed.stdout.split()
    )


def test_grpcurl_describes_an_rpc(served_address: str) -> None:
    described = _grpcurl(served_address, "describe", "ramet.tree.v1.SessionTree.GetNode")
    assert "rpc GetNode ( .ramet.tree.v1.GetNodeRequest ) returns ( .ramet.tree.v1.Node );" in described.stdout


def test_grpcurl_calls_every_rpc(served_address: str) -> None:
    options = ("-H", "ramet-space: grpcurl", "-emit-defaults", "-format-error")
    problems = []
    for call in example_calls():
        sent = "\n".join(map(json.dumps, call.requests()))
        done = _grpcurl(*options, "-d", sent, served_address, call.method)
        problems += _problems(call, done)
    assert problems == []
