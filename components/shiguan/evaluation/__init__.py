"""Measures what the modes find and answer: questions with judgements in, numbers with intervals and a report out."""
