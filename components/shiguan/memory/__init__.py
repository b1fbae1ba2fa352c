"""Conversation to what of it still matters."""
