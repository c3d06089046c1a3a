"""gRPC itself repeats what is safe to repeat, and nothing else."""

import json

from ramet.client.channel import service_config
from ramet.session.v1 import session_pb2
from ramet.tree.v1 import tree_pb2

NOT_REPEATED = {
    "ramet.session.v1.SessionStorage/Transact",
    "ramet.session.v1.SessionStorage/WatchRecords",
    "ramet.tree.v1.SessionTree/WatchTree",
}


def methods() -> dict[str, bool]:
    """Every method of the contracts, and whether its request bears a request id."""
    files = (session_pb2.DESCRIPTOR, tree_pb2.DESCRIPTOR)
    return {
        f"{service.full_name}/{method.name}": "request_id" in method.input_type.fields_by_name
        for file in files
        for service in file.services_by_name.values()
        for method in service.methods
    }


def test_every_method_is_retried_but_streams_that_have_a_position_or_a_state() -> None:
    (config,) = json.loads(service_config())["methodConfig"]
    retried = {f"{name['service']}/{name['method']}" for name in config["name"]}
    assert retried == methods().keys() - NOT_REPEATED
    assert config["retryPolicy"]["retryableStatusCodes"] == ["UNAVAILABLE"]


def test_a_method_that_is_retried_reads_or_bears_a_request_id() -> None:
    verbs = ("Get", "List", "BatchGet", "Diff")
    for full_name, has_request_id in methods().items():
        reads = full_name.rpartition("/")[2].startswith(verbs)
        assert reads is not has_request_id or full_name in NOT_REPEATED, full_name
