"""From a YAML file to an answer: loading, running, streaming, and the library of a tenant."""
