"""The SQL of the tables that session_service owns, a file per noun."""
