"""What stands between the network and the engine: who may ask, how much at once, and what they are told."""
