"""The whole EPUB reader: package, chapters, notes, sections."""
