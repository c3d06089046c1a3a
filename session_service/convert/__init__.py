"""Messages to values, and values to messages, a module per noun."""
