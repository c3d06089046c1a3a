"""The contract SessionStorage: the content of one session."""
