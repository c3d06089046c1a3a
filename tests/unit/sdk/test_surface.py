"""The clients reach every RPC, and the blocking ones have all that the asyncio ones have."""

import inspect
import re
from types import ModuleType

import pytest
from google.protobuf.descriptor import ServiceDescriptor

import ramet
import ramet.client
import ramet.orchestrator
import ramet.otlp
from ramet.client import (
    BlockingSessionStorage,
    BlockingSessionTree,
    BlockingTelemetry,
    BlockingTransaction,
    SessionStorageClient,
    SessionTreeClient,
    TelemetryClient,
    Transaction,
)
from ramet.session.v1 import session_pb2
from ramet.telemetry.v1 import telemetry_pb2
from ramet.tree.v1 import tree_pb2

RECORDERS = {"StreamEvents", "AppendEvents"}
"""What the recorder calls, and nobody by hand."""

RENAMED = {
    "GetDiagnosisSession": "get_diagnosis",
    "ListDiagnosisSessions": "list_diagnoses",
    "TailEvents": "tail",
    "Transact": "transaction",
}

SERVICES = [
    (session_pb2.DESCRIPTOR.services_by_name["SessionStorage"], SessionStorageClient),
    (tree_pb2.DESCRIPTOR.services_by_name["SessionTree"], SessionTreeClient),
    (telemetry_pb2.DESCRIPTOR.services_by_name["Telemetry"], TelemetryClient),
]

TWINS = [
    (SessionStorageClient, BlockingSessionStorage),
    (SessionTreeClient, BlockingSessionTree),
    (TelemetryClient, BlockingTelemetry),
    (Transaction, BlockingTransaction),
    (ramet.Orchestrator, ramet.BlockingOrchestrator),
    (ramet.Client, ramet.BlockingClient),
]


def public(owner: type) -> dict[str, object]:
    return {name: member for name, member in inspect.getmembers(owner) if not name.startswith("_")}


@pytest.mark.parametrize(("service", "client"), SERVICES)
def test_every_rpc_that_is_served_has_a_method_of_its_name(service: ServiceDescriptor, client: type) -> None:
    names = {method.name for method in service.methods} - RECORDERS
    expected = {RENAMED.get(name, _snake(name)) for name in names}
    assert expected <= public(client).keys()


@pytest.mark.parametrize(("service", "client"), SERVICES)
def test_a_method_takes_every_field_of_its_request(service: ServiceDescriptor, client: type) -> None:
    for method in service.methods:
        if method.name in RECORDERS | {"PutSession", "Transact"}:
            continue
        function = public(client)[RENAMED.get(method.name, _snake(method.name))]
        taken = set(inspect.signature(function).parameters)  # type: ignore[arg-type] # a function
        missing = {field.name for field in method.input_type.fields} - taken
        renamed = {"filter": "where", "order": "descending", "policy": "policy", "config": "config"}
        if method.name == "PutFeedback":
            renamed["feedback"] = "value"
        if method.name == "PutSelfEvaluation":
            renamed["self_evaluation"] = "evaluation"
        missing = {name for name in missing if renamed.get(name) not in taken}
        if method.name == "ListNodes":
            missing -= {"filter"}
            assert {field.name for field in tree_pb2.NodeFilter.DESCRIPTOR.fields} <= taken
        if method.name == "ForkSession":
            missing -= {"none", "all", "up_to_seq", "last", "records"}
            assert "history" in taken
        assert not missing, method.name


@pytest.mark.parametrize(("core", "twin"), TWINS)
def test_the_blocking_twin_has_every_method_with_the_same_parameters(core: type, twin: type) -> None:
    for name, member in public(core).items():
        other = public(twin).get(name)
        if name in ("sessions", "tree", "telemetry"):
            continue  # Attributes of each client, which is paired above
        assert other is not None, name
        if callable(member):
            assert callable(other)
            assert list(inspect.signature(member).parameters) == list(inspect.signature(other).parameters), name


@pytest.mark.parametrize("name", ["export_diagnosis", "send_trace"])
def test_a_function_has_a_blocking_twin_with_the_same_parameters(name: str) -> None:
    core, twin = getattr(ramet.otlp, name), getattr(ramet.otlp, f"{name}_blocking")
    assert list(inspect.signature(core).parameters) == list(inspect.signature(twin).parameters)


def test_a_transaction_takes_each_step_as_the_client_does() -> None:
    for field in session_pb2.TransactRequest.DESCRIPTOR.fields:
        if field.name in ("begin", "commit"):
            continue
        client = inspect.signature(getattr(SessionStorageClient, field.name)).parameters
        taken = inspect.signature(getattr(Transaction, field.name)).parameters
        assert list(taken) == [name for name in client if name != "request_id"], field.name
        assert all(str(taken[name]) == str(client[name]) for name in taken), field.name


@pytest.mark.parametrize("owner", [cls for pair in TWINS for cls in pair])
def test_every_public_method_is_documented_by_a_sentence(owner: type) -> None:
    for name, member in public(owner).items():
        first = (inspect.getdoc(member) or "").split("\n")[0]
        assert re.match(r"[A-Z].*[.:;]", first), f"{owner.__name__}.{name}"


@pytest.mark.parametrize("package", [ramet, ramet.client, ramet.orchestrator, ramet.otlp])
def test_a_package_exports_what_it_says(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_an_import_of_the_sdk_brings_in_nothing_of_the_server() -> None:
    sources = inspect.getsource(ramet) + "".join(
        inspect.getsource(inspect.getmodule(member))  # type: ignore[arg-type] # every member has a module
        for package in (ramet.client, ramet.orchestrator)
        for member in vars(package).values()
        if inspect.isclass(member)
    )
    assert not re.search(r"(from|import) (ramet_server|session_service|tree_service|sqlalchemy)", sources)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
