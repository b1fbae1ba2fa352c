"""
How well places in books are told and found again: CFIs read by a second implementation, pages, and edited books.

    python -m bench.quality.places ../shared/data/epub --spans 5000 [--edited]
"""

import argparse
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.dom import minidom

from tests.doubles.epub_cfi import CfiReader

from shiguan.claims.citations import cited_place
from shiguan.engine.places import PlaceFinder
from shiguan.ingest.epub_to_document import EPUBToDocument
from shiguan.ingest.parent_child_splitter import ParentChildSplitter
from shiguan.ingest.source_stamper import SourceStamper
from shiguan.text.places import place_of

INVISIBLE = re.compile("[\\s\u00ad\u200b\ufeff\u2061-\u2064]")


def parents_of(path):
    """Read a book as an ingest does, without a library."""
    documents = EPUBToDocument().run(sources=[path])["documents"]
    stamped = SourceStamper().run(documents, tenant_id="bench")["documents"]
    return ParentChildSplitter().run(stamped)["parents"]


def random_spans(parents, count, generator):
    """Spans of 20 to 400 characters that begin and end with a visible character, anywhere in the passages."""
    weights = [len(parent.content) for parent in parents]
    for parent in generator.choices(parents, weights, k=count):
        text = parent.content
        start = generator.randrange(len(text))
        end = min(len(text), start + generator.randint(20, 400))
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        if start < end:
            yield parent, start, end


def read_back(reader, cfi):
    """Give the characters of a range, without spaces and what is no text."""
    shown, hidden = [], 0
    for piece in reader.text(cfi):
        if piece is None:
            hidden = max(hidden - 1, 0)
        elif isinstance(piece, minidom.Element):
            hidden += bool(hidden) or is_no_text(piece)
        elif not hidden:
            shown.append(piece)
    return INVISIBLE.sub("", "".join(shown))


def is_no_text(element):
    """Tell what is no text: readings beside it, sounds and films, numbers of printed pages and lines, note marks."""
    words = f"{element.getAttribute('epub:type')} {element.getAttribute('role')} {element.getAttribute('class')}"
    number = re.search(r"pagebreak|pagenum|lnum|line-?num|lineno|noteref", words)
    return bool(number) or element.localName in ("rt", "rp", "rtc", "script", "style", "audio", "video")


def without_notes(parent, start, end):
    """Give the span's own characters: without notes, which are put in, and the words for pictures."""
    text = list(parent.content)
    for block in parent.meta["blocks"]:
        for note in block.get("notes", ()):
            for at in range(max(note["start"], 0), min(note["end"], len(text))):
                text[at] = ""
    return INVISIBLE.sub("", re.sub(r"\[(?:Image: |图：)[^]]*\]?|^[^[]*\](?=$)", "", "".join(text[start:end])))


def cfis(path, parents, count, generator):
    """Read random spans of a book back at their CFIs."""
    reader, result, wrong = CfiReader(path), Counter(), []
    for parent, start, end in random_spans(parents, count, generator):
        cfi = place_of(parent.meta, parent.content, (start, end)).get("cfi", "")
        result["spans"] += 1
        if cfi.count(",") != 2:
            result["whole element or point" if cfi else "none"] += 1
            continue
        try:
            found = read_back(reader, cfi)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        same = found == INVISIBLE.sub("", parent.content[start:end])
        if not same and found == without_notes(parent, start, end):
            result["same but for notes and pictures"] += 1
        elif not same:
            result["other"] += 1
            wrong.append((cfi, parent.content[start:end], found))
        else:
            result["same"] += 1
    return result, wrong


def edited(documents, generator, share):
    """
    Edit, move or remove a share of a book's paragraphs, and number all paths anew.

    What became of each paragraph stands in its meta: `kept`, `moved`, `removed`, or the new place of each character.
    """
    documents = [replace(one, meta=dict(one.meta)) for one in documents]
    touched = generator.sample(range(len(documents)), round(share * len(documents)))
    moved, words = [], [word for one in documents[:500] for word in one.content.split()]
    for number, at in enumerate(touched):
        document = documents[at]
        if number % 3 == 0:
            text = document.content
            # One word in its place, one left out and one put in, or some characters where there are no words.
            place = generator.randrange(len(text))
            gone = text[place : place + generator.randint(1, 8)]
            put = generator.choice(words)[:8]
            edit = {"edit": (place, len(gone), len(put) - len(gone))}
            documents[at] = replace(
                document, content=text[:place] + put + text[place + len(gone) :], meta=document.meta | edit
            )
        elif number % 3 == 1:
            moved.append(document)
    removed = {touched[number] for number in range(len(touched)) if number % 3}
    kept = [one for at, one in enumerate(documents) if at not in removed]
    for document in moved:
        at = generator.randrange(len(kept) + 1)
        near = kept[min(at, len(kept) - 1)]
        anchor = document.meta["anchor"] | {"href": near.meta["anchor"]["href"]}
        kept.insert(at, replace(document, meta=document.meta | {"section": near.meta["section"], "anchor": anchor}))
    return kept


def numbered(documents):
    """Give every paragraph the path that its number in its file makes."""
    counts = Counter()
    for document in documents:
        href = document.meta["anchor"]["href"]
        counts[href] += 1
        anchor = {"href": href, "spine": 0, "path": f"/html/body/p[{counts[href]}]", "offset": 0}
        meta = {name: value for name, value in document.meta.items() if name not in ("cfi", "notes", "pages")}
        yield replace(document, meta=meta | {"anchor": anchor})


def split(documents):
    """Cut paragraphs into passages, and say for each character which paragraph it is from."""
    stamped = SourceStamper().run(list(numbered(documents)), tenant_id="bench")["documents"]
    return ParentChildSplitter().run(stamped)["parents"]


def paragraph_of(parent, at):
    """Give the block of a passage that a character stands in, and where in it."""
    block = next(one for one in parent.meta["blocks"] if one["start"] <= at < one["end"])
    return block["anchor"]["href"], block["anchor"]["path"], block["anchor"]["offset"] + at - block["start"]


def relocated(path, count, generator, share=0.05):
    """Find random places of a book again after it was edited; a place is right where its first character is."""
    documents = EPUBToDocument().run(sources=[path])["documents"]
    for number, document in enumerate(documents):
        document.meta["number"] = number
    new = edited(documents, generator, share)
    old_paths = {tuple(one.meta["anchor"][n] for n in ("href", "path")): one for one in numbered(documents)}
    new_paths = {tuple(one.meta["anchor"][n] for n in ("href", "path")): one for one in numbered(new)}
    left = {one.meta["number"]: one for one in new}
    finder, result, wrong = PlaceFinder(split(new)), Counter(), []
    for parent, start, end in random_spans(split(documents), count, generator):
        block = next((one for one in parent.meta["blocks"] if one["start"] <= start < one["end"]), None)
        if block is None or block["end"] < end:
            continue
        *where, offset = paragraph_of(parent, start)
        number = old_paths[tuple(where)].meta["number"]
        citation = cited_place(parent, (start, end))
        found = finder.find(citation)
        now = left.get(number)
        place, gone, more = (now.meta.get("edit") or (10**9, 0, 0)) if now else (0, 0, 0)
        within = offset < place + gone and place < offset + end - start
        kind = "removed" if now is None else "edited" if "edit" in now.meta else "as it was"
        if now is None:
            right = found["state"] == "gone"
        elif found["now"] is None:
            right = False
        else:
            anchor = found["now"]["anchor"]
            there = new_paths[anchor["href"], anchor["path"]].meta["number"]
            shift = more if offset >= place + gone else 0
            # Where the first character itself is gone or new, what is left begins a few characters beside it.
            slack = 12 if within else 0
            right = there == number and abs(anchor["offset"] - offset - shift) <= slack
        state = found["state"]
        verdict = "right" if right else "wrong place" if found["now"] else "not found"
        result[verdict] += 1
        result[f"{kind}: {state}, {verdict}"] += 1
        if verdict != "right":
            wrong.append((kind, citation["selector"], state, found["now"] and found["now"]["selector"]))
    return result, wrong


def main():
    """Print what each book gave."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--spans", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="so many spans that were read otherwise")
    parser.add_argument("--edited", action="store_true", help="find places again after 5 %% of paragraphs changed")
    options = parser.parse_args()
    books = {path: parents_of(path) for path in sorted(options.folder.glob("*.epub"))}
    sizes = {path: sum(len(parent.content) for parent in parents) for path, parents in books.items()}
    if options.edited:
        total = Counter()
        for path in (path for path, size in sizes.items() if size > 20_000):
            result, wrong = relocated(path, options.spans // 5, random.Random(options.seed))
            print(f"{path.name}: {dict(sorted(result.items()))}")
            for line in wrong[: options.show]:
                print("   ", *map(repr, line), sep="\n      ")
            total += result
        tried = total["right"] + total["wrong place"] + total["not found"]
        print(f"all: {dict(sorted(total.items()))}, found or said to be gone {total['right'] / tried:.4f}")
        return
    total = Counter()
    generator = random.Random(options.seed)
    drawn = Counter(generator.choices(list(books), list(sizes.values()), k=options.spans))
    for path, parents in books.items():
        result, wrong = cfis(path, parents, drawn[path], generator)
        print(f"{path.name}: {dict(result)}")
        for line in wrong[: options.show]:
            print("   ", *map(repr, line), sep="\n      ")
        total += result
    good = total["same"] + total["same but for notes and pictures"]
    print(f"all: {dict(total)}, to the same characters {good / total['spans']:.4f}")


if __name__ == "__main__":
    main()
