"""Forks: a child finds recorders that are empty, and is kept away from gRPC where that would hang it.

gRPC's threads and locks do not survive a fork: measured, a child that calls gRPC after its parent did hangs as a whole,
or dies. So a recorder in such a child only spools, and on the agent's own thread. Beyond that, gRPC's own handlers of
forks, which are on by default, kill one child in four or so of a process with an open stream by a segmentation fault,
without any recorder, too; with GRPC_ENABLE_FORK_SUPPORT=0 in the environment before gRPC is imported, none. ``ramet``
sets it where nobody else has.
"""

import os
import sys
import weakref
from pathlib import Path
from typing import Protocol

__all__ = ["keep_safe", "used_grpc"]

_GRPC_THREAD = "grpc_global_tim"


class _Forked(Protocol):
    def begin_anew_in_child(self, *, may_send: bool) -> None: ...


_recorders: "weakref.WeakSet[_Forked]" = weakref.WeakSet()
_grpc_in_parent = False
_own_grpc = False


def keep_safe(recorder: _Forked) -> None:
    """Lets a recorder begin anew in every child."""
    _recorders.add(recorder)


def used_grpc() -> None:
    """Says that this process uses gRPC from now on."""
    global _own_grpc  # noqa: PLW0603 - of the process, as gRPC's own state is
    _own_grpc = True


def _before() -> None:
    global _grpc_in_parent  # noqa: PLW0603 - of the process, as gRPC's own state is
    if _recorders and not _grpc_in_parent:
        _grpc_in_parent = _own_grpc or _runs_grpc()


def _in_child() -> None:
    for recorder in list(_recorders):
        recorder.begin_anew_in_child(may_send=not _grpc_in_parent)


def _runs_grpc() -> bool:
    """Tells whether anything in this process has used gRPC: only Linux tells, by the names of its threads."""
    if not sys.platform.startswith("linux") or "grpc" not in sys.modules:
        return False
    try:
        return any(_named(task) == _GRPC_THREAD for task in Path("/proc/self/task").iterdir())
    except OSError:
        return False


def _named(task: Path) -> str:
    try:
        return (task / "comm").read_text().strip()
    except OSError:
        # A thread that has just ended.
        return ""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_child=_in_child)
