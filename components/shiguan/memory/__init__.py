"""Conversation to what still matters."""
