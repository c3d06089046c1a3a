"""The service's part of the background sweep: what calls and crashes left to do."""

from collections.abc import Sequence

from ramet_server.domain.call import Call
from session_service.rules.deletion import DeletionRules
from session_service.rules.erasure import ErasureRules
from session_service.rules.ports import Store, UnitOfWork
from session_service.rules.values import DeletedSession


class SweepRules:
    """What the sweep of all spaces asks for; every step may be repeated."""

    def __init__(self, store: Store, deletion: DeletionRules, erasure: ErasureRules) -> None:
        self._store = store
        self._deletion = deletion
        self._erasure = erasure

    def erase_released(self, call: Call, limit: int) -> int:
        """Erases records that no session shows any more; looks at some ``limit`` and returns at how many it did.

        The space of the call has no meaning here: released records belong to no space.
        """
        return self._erasure.sweep(call, limit)

    def delete_incarnation(self, call: Call, session_id: str, origin: str) -> bool:
        """Deletes a session of the call's space if it is still the one that began as ``origin``."""
        return self._deletion.delete_incarnation(call, session_id, origin)

    def deleted_sessions(self, call: Call, limit: int) -> list[DeletedSession]:
        """Returns notes of deleted sessions of all spaces, oldest first."""
        return self._store.read(call, lambda unit: unit.sessions.deleted(limit))

    def forget_deleted(self, call: Call, notes: Sequence[DeletedSession]) -> None:
        """Removes notes that were dealt with."""

        def work(unit: UnitOfWork) -> None:
            for note in notes:
                unit.sessions.forget_deleted(note)

        self._store.write(call, work)
