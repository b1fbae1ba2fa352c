"""The server: authentication, limits, routes and error replies between the network and the engine."""
