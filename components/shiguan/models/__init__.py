"""The offline embedder: its packaged weights, its tokenizer, its engine; the counting and weighing of words."""
