"""Parses Python source and annotations into trees, never into code."""

import ast


def parse_source(source: str) -> ast.Module:
    """Parse a module's source."""
    try:
        return ast.parse(source)
    except SystemError:
        # Up to Python 3.11.8 the parser miscounts if a garbage collection in its midst reports a lost task, whose
        # traceback is parsed for its carets (github.com/python/cpython/issues/106905). The second time it is alone.
        return ast.parse(source)


def parse_annotation(annotation: str) -> ast.expr:
    """Parse an annotation."""
    statements = parse_source(annotation.strip()).body
    if len(statements) != 1 or not isinstance(statements[0], ast.Expr):
        raise SyntaxError(f"`{annotation}` is no annotation")
    return statements[0].value
