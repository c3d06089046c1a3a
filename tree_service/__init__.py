"""SessionTree: the shape of the forest, and the frozen config of each node."""
