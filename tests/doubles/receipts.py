"""Receipts without a question having been asked."""

from shiguan.engine.receipts import Receipt


def receipt(tenant_id="a", question="Who?", *, answer="", status=None, quotes=()):
    """Give a receipt as a server keeps it, with its own id."""
    found = Receipt.model_validate(
        {
            "version": 1, "written": "2026-01-01T00:00:00+00:00", "shiguan": "0.1.0", "tenant_id": tenant_id,
            "deployment": "embedded", "mode_sha256": "", "parameters": {}, "prompt": {}, "passages": [], "calls": [],
            "grading": {},
            "answer": {
                "query": question, "mode": "simple", "status": status or ("answered" if quotes else "not_found"),
                "answer": answer,
                "citations": [
                    {
                        "number": 1, "parent_id": "p", "source": "tang.epub", "section": [], "start": 0, "end": 1,
                        "quote": quote,
                    }
                    for quote in quotes
                ],
            },
        }
    )  # fmt: skip
    return found.model_copy(update={"id": found.own_id()})
