"""What a line of text is, in any language: words, sentences, numbers, names."""
