"""The database: tables, engine policy per dialect, units of work, and the schema's history."""
