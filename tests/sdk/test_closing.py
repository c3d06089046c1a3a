"""Calls under way when their client is closed, or their caller interrupted, end at once and say why."""

import asyncio
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import ramet
from ramet.client.loop_thread import LoopThread
from ramet.session.v1 import session_pb2 as pb
from tests.sdk.scripted import Hangs, Streams, scripted

SESSION = pb.Session(id="s", status=pb.SESSION_STATUS_ACTIVE)


async def test_closing_the_client_ends_its_calls_with_an_error_of_ours() -> None:
    async with scripted(GetSession=Hangs()) as server:
        client = ramet.connect(server.address)
        task = asyncio.create_task(client.sessions.get_session("s"))
        await asyncio.wait_for(server.waiting.wait(), 5)
        await client.close()
        with pytest.raises(ramet.Cancelled):
            await asyncio.wait_for(task, 5)
        await asyncio.wait_for(server.gone.wait(), 5)


def test_an_interrupt_of_a_blocking_call_cancels_it_on_the_server() -> None:
    loop = LoopThread.acquire()
    answers = scripted(GetSession=Hangs())
    server = loop.run(answers.__aenter__())
    # Where a shell runs the tests in the background, Python inherits that interrupts are ignored.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ramet.connect_blocking(server.address) as client:

            def interrupt() -> None:
                loop.run(server.waiting.wait())
                os.kill(os.getpid(), signal.SIGINT)

            interrupter = threading.Thread(target=interrupt)
            interrupter.start()
            with pytest.raises(KeyboardInterrupt):
                client.sessions.get_session("s")
            interrupter.join()
            loop.run(asyncio.wait_for(server.gone.wait(), 5))
    finally:
        signal.signal(signal.SIGINT, inherited)
        loop.run(answers.__aexit__(None, None, None))
        loop.release()


async def test_closing_the_client_ends_its_streams_likewise() -> None:
    reply = pb.BatchGetSlotsResponse(sessions=[pb.SessionSlots(session_id="s")])
    async with scripted(BatchGetSlots=Streams((reply, Hangs()))) as server:
        client = ramet.connect(server.address)
        slots = client.sessions.batch_get_slots(["s", "t"])
        await anext(slots)
        task = asyncio.create_task(anext(slots))
        await asyncio.wait_for(server.waiting.wait(), 5)
        await client.close()
        with pytest.raises(ramet.Cancelled):
            await asyncio.wait_for(task, 5)


def test_closing_a_blocking_client_ends_the_calls_of_other_threads() -> None:
    loop = LoopThread.acquire()
    answers = scripted(GetSession=Hangs())
    server = loop.run(answers.__aenter__())
    try:
        client = ramet.connect_blocking(server.address)
        with ThreadPoolExecutor(1) as thread:
            future = thread.submit(client.sessions.get_session, "s")
            loop.run(server.waiting.wait())
            client.close()
            with pytest.raises(ramet.Cancelled):
                future.result(5)
    finally:
        loop.run(answers.__aexit__(None, None, None))
        loop.release()


async def test_a_connection_may_be_encrypted() -> None:
    key, certificate = _certificate()
    async with scripted(credentials=grpc.ssl_server_credentials([(key, certificate)]), GetSession=SESSION) as server:
        trusted = grpc.ssl_channel_credentials(certificate)
        async with ramet.connect(server.address, credentials=trusted) as client:
            assert (await client.sessions.get_session("s")).id == "s"
        async with ramet.connect(server.address, timeout=0.5) as client:
            with pytest.raises((ramet.Unavailable, ramet.DeadlineExceeded)):
                await client.sessions.get_session("s")


def _certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return private, certificate.public_bytes(serialization.Encoding.PEM)
