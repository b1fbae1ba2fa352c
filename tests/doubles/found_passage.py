"""A question and the passage that answers it, as retrieval hands it to what answers."""

from haystack import Document

QUERY = "When did Guo Ziyi take Chang'an back?"
FIRST = "The rebels held the city for a year. In 757 Guo Ziyi took Chang'an back. He had Uighur horsemen."


def passage(text=FIRST, *, sentence="In 757 Guo Ziyi took Chang'an back.", number=1, **meta):
    """Give a passage in which one sentence was found, with a number in the context or without."""
    start = text.index(sentence)
    matches = [{"child_id": "c", "start": start, "end": start + len(sentence), "score": 2.0}]
    known = {"source": "tang.epub", "language": "en", "matches": matches, **meta}
    return Document(id=f"p{number or 1}", content=text, meta={**({"number": number} if number else {}), **known})
