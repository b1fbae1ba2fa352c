"""Answer to verdicts: retry, mark or refuse."""
