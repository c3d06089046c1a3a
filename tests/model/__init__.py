"""Both contracts, driven at random and compared with a small model in memory."""
