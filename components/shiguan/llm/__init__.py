"""One door to a language model: the generator, its calls and their counting, prompts, and reading replies."""
