"""The contract SessionTree: the shape of the forest."""
