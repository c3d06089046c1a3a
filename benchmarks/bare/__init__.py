"""The limits that Ramet is measured against: servers that do one thing and check nothing."""
