"""The operations over HTTP: what the engine offers, asked of a gateway. Neither app nor worker sees a difference."""
