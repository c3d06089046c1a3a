"""Export and import: sessions, forest and telemetry as JSON Lines, and back; transcripts of others, too."""

from ramet_server.archiving.errors import ArchiveError
from ramet_server.archiving.exporting import Export, Scope, ScopeKind
from ramet_server.archiving.folders import read_folder
from ramet_server.archiving.id_mapping import KeptIds, NewIds
from ramet_server.archiving.importing import Choices, Import
from ramet_server.archiving.lines import Counts
from ramet_server.archiving.reading import is_archive, raw_lines, read_lines
from ramet_server.archiving.redacting import BadRedaction, load_redaction
from ramet_server.archiving.transcripts import read_transcripts

__all__ = [
    "ArchiveError",
    "BadRedaction",
    "Choices",
    "Counts",
    "Export",
    "Import",
    "KeptIds",
    "NewIds",
    "Scope",
    "ScopeKind",
    "is_archive",
    "load_redaction",
    "raw_lines",
    "read_folder",
    "read_lines",
    "read_transcripts",
]
