"""Reads PDFs: characters to lines, lines to pages, pages to one text."""
