"""Pure helpers by topic; they know no stage."""
