"""Every RPC of every served contract, tried with the bad input that fits each of its fields."""
