"""What one call is and gets, whatever its method."""

import asyncio
import logging
import time
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from ramet_server.domain.call import Call
from ramet_server.domain.errors import InvalidField, NodeNotFound, StaleHead
from tests.serving.conftest import EchoStarter, details_of, method_of, reason_of
from tests.serving.echo_service import NAME, Text


async def test_call_gets_space_deadline_and_id_from_metadata(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        call = echo.method("Say")(
            Text(text="hi"), timeout=5, metadata=(("ramet-space", "Team A"), ("x-request-id", "call-7"))
        )
        assert (await call).text == "hi"
        assert (await call.trailing_metadata())["x-request-id"] == "call-7"
        seen: Call = echo.servicer.calls[0]
        assert (seen.space, seen.call_id) == ("Team A", "call-7")
        assert seen.deadline is not None
        assert 0 < seen.deadline - time.monotonic() <= 5


async def test_call_without_metadata_is_in_the_default_space_and_gets_an_id(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        call = echo.method("Say")(Text(text="hi"))
        await call
        seen: Call = echo.servicer.calls[0]
        assert (seen.space, seen.deadline) == ("default", None)
        assert (await call.trailing_metadata())["x-request-id"] == seen.call_id


@pytest.mark.parametrize(("space", "reason"), [("", "INVALID_FIELD"), ("x" * 129, "TOO_LARGE")])
async def test_illegal_space_is_refused_naming_the_metadata(echo_server: EchoStarter, space: str, reason: str) -> None:
    async with echo_server() as echo:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await echo.method("Say")(Text(), metadata=(("ramet-space", space),))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert reason_of(caught.value) == reason
        assert not echo.servicer.calls


async def test_illegal_call_id_is_replaced(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        call = echo.method("Say")(Text(), metadata=(("x-request-id", "y" * 500),))
        await call
        assert len((await call.trailing_metadata())["x-request-id"]) == 32


async def test_error_brings_code_reason_details_and_field(echo_server: EchoStarter) -> None:
    def fail(request: Any, call: Call) -> Any:
        raise InvalidField("label is odd.", field="session.label", details={"why": "odd"})

    async with echo_server() as echo:
        echo.servicer.on_say = fail
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await echo.method("Say")(Text(), metadata=(("x-request-id", "c1"),))
        status = details_of(caught.value)
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        assert status.details[0].Unpack(info)
        assert status.details[1].Unpack(bad)
        assert (status.code, status.message) == (3, caught.value.details())
        assert (info.reason, info.domain, dict(info.metadata)) == ("INVALID_FIELD", "ramet", {"why": "odd"})
        assert [(v.field, v.description) for v in bad.field_violations] == [("session.label", "label is odd.")]
        trailing = caught.value.trailing_metadata()
        assert trailing is not None
        assert trailing["x-request-id"] == "c1"


async def test_uncaught_error_is_internal_and_its_text_is_only_logged(
    echo_server: EchoStarter, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(request: Any, call: Call) -> Any:
        raise RuntimeError("INSERT INTO record VALUES ('secret')")

    async with echo_server() as echo:
        echo.servicer.on_say = fail
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await echo.method("Say")(Text(), metadata=(("x-request-id", "c9"),))
        assert caught.value.code() is grpc.StatusCode.INTERNAL
        assert caught.value.details() == "Internal error in call c9."
        assert b"secret" not in details_of(caught.value).SerializeToString()
        assert "secret" in caplog.text


async def test_bytes_that_are_no_message_are_refused(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        for name in ("Say", "SayAsync"):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await echo.channel.unary_unary(f"/{NAME}/{name}")(b"\xff\xff\xff")
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert reason_of(caught.value) == "INVALID_MESSAGE"


async def test_method_that_nobody_implements_is_unimplemented_with_a_reason(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        with pytest.raises(grpc.aio.AioRpcError) as unary:
            await echo.method("Missing")(Text())
        with pytest.raises(grpc.aio.AioRpcError) as stream:
            await echo.method("MissingStream")(iter([Text()])).read()
        for caught in (unary, stream):
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
            assert reason_of(caught.value) == "NOT_SERVED"


async def test_method_outside_the_contract_is_unimplemented(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await echo.channel.unary_unary(f"/{NAME}/Nothing")(b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_reply_over_the_message_limit_is_refused_with_the_limit(echo_server: EchoStarter) -> None:
    async with echo_server(max_message_bytes=1000) as echo:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await echo.method("Say")(Text(text="x" * 1001))
        assert reason_of(caught.value) == "TOO_LARGE"


async def test_reply_of_the_wrong_type_is_internal(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        echo.servicer.on_say = lambda request, call: error_details_pb2.ErrorInfo()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await echo.method("Say")(Text())
        assert caught.value.code() is grpc.StatusCode.INTERNAL


async def test_call_that_may_not_begin_gets_what_the_door_raises(echo_server: EchoStarter) -> None:
    def check() -> None:
        raise NodeNotFound("shut")

    async with echo_server(check=check) as echo:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await echo.method("Say")(Text())
        assert reason_of(caught.value) == "NODE_NOT_FOUND"
        assert not echo.servicer.calls


async def test_client_that_leaves_cancels_the_call(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        call = echo.method("Say")(Text(text="wait"))
        await asyncio.to_thread(echo.servicer.gate.entered.acquire, timeout=10)
        call.cancel()
        assert await asyncio.to_thread(echo.servicer.calls[0].cancelled.wait, 10)


async def test_deadline_that_passes_cancels_the_call(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await echo.method("Say")(Text(text="wait"), timeout=0.2)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert await asyncio.to_thread(echo.servicer.calls[0].cancelled.wait, 10)


async def test_call_whose_deadline_passed_in_the_queue_never_starts(echo_server: EchoStarter) -> None:
    async with echo_server(threads=1) as echo:
        first = asyncio.ensure_future(echo.method("Say")(Text(text="wait")))
        await asyncio.to_thread(echo.servicer.gate.entered.acquire, timeout=10)
        with pytest.raises(grpc.aio.AioRpcError):
            await echo.method("Say")(Text(text="late"), timeout=0.2)
        echo.servicer.gate.go.set()
        await first
        await echo.method("Say")(Text(text="after"))
        assert len(echo.servicer.calls) == 2


async def test_each_call_has_one_log_line_without_content(
    echo_server: EchoStarter, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(request: Any, call: Call) -> Any:
        raise StaleHead("stale", details={"head_seq": "7"})

    caplog.set_level(logging.INFO)
    async with echo_server() as echo:
        await echo.method("Say")(Text(text="private words"), metadata=(("x-request-id", "a"),))
        echo.servicer.on_say = fail
        with pytest.raises(grpc.aio.AioRpcError):
            await echo.method("Say")(Text(text="private words"), metadata=(("x-request-id", "b"), ("ramet-space", "s")))
    lines = [record.ramet_fields for record in caplog.records if record.name == "ramet.call"]  # type: ignore[attr-defined]  # an extra
    assert [(line["method"], line["code"], line.get("reason"), line["space"], line["call"]) for line in lines] == [
        (f"{NAME}/Say", "OK", None, "default", "a"),
        (f"{NAME}/Say", "ABORTED", "STALE_HEAD", "s", "b"),
    ]
    assert "private" not in caplog.text


async def test_client_that_leaves_as_it_is_refused_is_no_error_in_the_log(
    echo_server: EchoStarter, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(request: Any, call: Call) -> Any:
        raise NodeNotFound("No node has this id.")

    def call_and_leave(address: str) -> None:
        with grpc.insecure_channel(address) as channel:
            say = method_of(channel, "Say")
            for _ in range(150):
                # Deadlines about as long as a call takes here: some pass while a refusal is on its way.
                calls = [say.future(Text(), timeout=(10 + place) / 5000) for place in range(20)]
                assert all(call.exception() is not None for call in calls)

    async with echo_server(threads=4) as echo:
        echo.servicer.on_say = refuse
        await asyncio.to_thread(call_and_leave, echo.address)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
