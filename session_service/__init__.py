"""SessionStorage: the content of one session."""
