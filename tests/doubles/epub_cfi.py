"""A second reading of EPUB CFIs: by the W3C text alone, on the tree of another parser (expat, `xml.dom.minidom`)."""

import re
import zipfile
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from xml.dom import minidom

STEP = re.compile(r"/(\d+)(?:\[(?:\^.|[^\]^])*\])?")
PATH = re.compile(r"((?:/\d+(?:\[(?:\^.|[^\]^])*\])?)*)(!)?")


class CfiReader:
    """The files of a book, and the points that CFIs lead to in them."""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path)
        container = minidom.parseString(self.archive.read("META-INF/container.xml"))
        self.opf_name = container.getElementsByTagName("rootfile")[0].getAttribute("full-path")
        self.trees = {}

    def tree(self, name):
        if name not in self.trees:
            data = self.archive.read(name).decode("utf-8-sig")
            data = re.sub(r"(?s)<!DOCTYPE[^>\[]*(\[.*?\]\s*)?>", "", data, count=1)
            data = data.replace("&nbsp;", "&#160;")
            self.trees[name] = minidom.parseString(data.encode())
        return self.trees[name]

    def text(self, cfi):
        """The characters between the two points of a range, as they stand in the tree."""
        inner = re.fullmatch(r"epubcfi\((.*)\)", cfi)[1]
        parent, start, end = inner.split(",")
        (node, begin), (last, stop) = self.point(parent + start), self.point(parent + end)
        top = node
        while top.parentNode is not None:
            top = top.parentNode
        pieces, inside = [], False
        for chunk in chunks(top):
            first, final = same(chunk, node), same(chunk, last)
            inside = inside or first
            if inside and isinstance(chunk, list):
                text = "".join(part.data for part in chunk if part.nodeType in (3, 4))
                pieces.append(cut(text, begin if first else 0, stop if final else None))
            elif inside:
                pieces.append(chunk)
            if final:
                return pieces
        raise ValueError(f"{cfi} ends nowhere")

    def point(self, path):
        """A run of character data (by its first node) and the offset in it, in UTF-16 units."""
        path, _, offset = path.partition(":")
        package, _, inside = path.partition("!")
        opf = self.tree(self.opf_name)
        itemref = walk(opf.documentElement, package)
        item = next(i for i in opf.getElementsByTagName("*") if i.getAttribute("id") == itemref.getAttribute("idref"))
        name = normpath(join(dirname(self.opf_name), unquote(item.getAttribute("href"))))
        return walk(self.tree(name).documentElement, inside), int(offset)


def walk(node, path):
    for number in STEP.findall(path):
        node = child(node, int(number))
    return node


def child(node, number):
    """Even numbers are elements, odd ones the character data between them, which may be empty."""
    elements, runs = [], [[]]
    for one in node.childNodes:
        if one.nodeType == 1:
            elements.append(one)
            runs.append([])
        elif one.nodeType in (3, 4):
            runs[-1].append(one)
    found = elements[number // 2 - 1] if number % 2 == 0 else runs[number // 2]
    if not found:
        raise ValueError(f"step {number} leads to nothing")
    return found if number % 2 == 0 else found[0]


def chunks(node):
    """Runs of character data in their order, and between them the elements that begin (`node`) or end (None)."""
    run = []
    for one in node.childNodes:
        if one.nodeType in (3, 4):
            run.append(one)
        elif one.nodeType == 1:
            if run:
                yield run
            run = []
            yield one
            yield from chunks(one)
            yield None
    if run:
        yield run


def same(chunk, node):
    return isinstance(chunk, list) and chunk[0] is node


def cut(text, begin, end):
    units = text.encode("utf-16-le")
    return units[2 * begin : None if end is None else 2 * end].decode("utf-16-le")
