"""The ASGI application that is served: Hayhooks with the three modes, behind Shiguan's gate."""
