"""Converts Markdown files to documents, one per paragraph, quotation, list, table or note."""

import json
import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import yaml
from haystack import Document, component
from haystack.dataclasses import ByteStream
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import escapedSplit, getLine, table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from shiguan.ingest.epub.pictures import readable_tex
from shiguan.ingest.epub.reader import page_documents
from shiguan.ingest.epub.trees import parse_xhtml
from shiguan.ingest.file_types import Converter, Reports
from shiguan.text.works import work_of

_FRONT_MATTER = re.compile(
    r"\A(?:---[ \t]*\r?\n(?!\s*\n)(?P<yaml>.*?)^(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n(?P<toml>.*?)^\+\+\+)[ \t]*\r?$\n?"
    r"|\A(?P<pandoc>(?:%[ \t][^\n]*\n){1,3})(?=\s*\n)|\A(?P<json>\{[ \t]*\r?\n.*?^\})[ \t]*\r?$\n?",
    re.S | re.M,
)
_LONGEST_FRONT_MATTER = 16 * 1024
_NAME = re.compile(r"[a-z][\w-]*\s*[:=]")  # what front matter that cannot be read begins with
# Pandoc takes its block of names at the end, too.
_BACK_MATTER = re.compile(r"\n\r?\n(---[ \t]*\r?\n(?:(?!---|\.\.\.)[^\n]*\n)+(?:---|\.\.\.))\s*\Z")
# `{#id .class key=value}` at the end of a line, or after a link or a code.
_ATTRIBUTE = r"(?:[#.][\w:.-]+|[\w-]+=(?:\"[^\"\n]*\"|[^\s\"}]+))"
_BRACES = rf"\{{:?[ \t]*(?:{_ATTRIBUTE}|-)(?:[ \t]+{_ATTRIBUTE})*[ \t]*\}}"
_ATTRIBUTES = re.compile(rf"(?:[ \t](?=\{{[^{{}}]*\}}[ \t]*$)|(?<=[\])`])){_BRACES}", re.M)
_SPAN = re.compile(rf"(?<!\])\[([^\[\]\n]+)\]{_BRACES}")
# Whole lines that are no text: comments, attributes, targets and properties, breaks, abbreviations, imports, snippets,
# the name of a block at its end, the mark of a table's caption, options of directives.
_UNSEEN = re.compile(
    r"^%%[^%]*^%%[ \t]*$|[ \t]\^[A-Za-z0-9-]{3,}\s*\Z|\A(?:%[ \t][^\n]*(?:\n|\Z))+\Z|\A:[ \t]+"
    r"|^\{::comment\}[^{}]*\{:/\w*\}|^\*\[[^\[\]\n]+\]:[^\n]*$|^-+8<-+[^\n]*$"
    r"|^[ \t]*(?:\{:[^{}\n]*\}|\{[ \t]*[.#][\w-][^{}\n]*\}|\([\w-]+\)=|\+\+\+(?:[ \t]*\{[^\n]*\})?)[ \t]*$"
    r"|^[ \t]*(?:id:: [\w-]{5,}|collapsed:: \w+)[ \t]*$"
    r"|^import [^\n]+ from ['\"][^'\"\n]+['\"];?[ \t]*$",
    re.M,
)
# What a directive begins with that shows it, which no file, language or number is; and a link that a program computes.
_TITLED = re.compile(
    r"\{(?!code|sourcecode|math|include|figure|image|raw|grid)[a-z-]+\}[ \t]+(?![\w./:-]*[./:\d]\w*$)(\S.*)"
)
_COMPUTED = re.compile(r"(?<=\])\(\{(?:\{[^{}\n]*\}|%[^{}\n]*%)\}[^()\n]*\)")
_NESTED = 2  # ==[[marked|link]]==
_OPTIONS = re.compile(r"\A(:{3,}[^\n]*\n|)(?::[a-z-]+:[^\n]*(?:\n|\Z))+")
# What is written for others than readers, in the order in which it counts: raw code, roles and readings, code itself,
# which stays; changes that wait for approval (CriticMarkup), read as accepted; comments; raised and lowered numbers.
_WRITTEN = re.compile(
    r"`[^`]*`\{=\w+\}|\{[a-z][a-z:-]*\}`(?P<role>[^`<]*)(?:<[^`]*)?`|(?P<code>`+[^`]*`+)|\{(\+\+|==)(?P<kept>[^{}]*)\3\}"
    r"|\{--[^{}]*--\}|\{>>[^{}]*<<\}|\{~~(?:[^{}~]|~(?!>))*~>(?P<new>[^{}]*)~~\}|\{/\*[^{}]*\*/\}"
    r"|\{(?P<base>[\u3005\u3400-\u9fff]+)\|[\u3040-\u30ff|]+\}|\^(?P<sup>\d{1,4}|st|nd|rd|th|(?<=[\w)]\^)[A-Za-z\d+−-]{1,6})\^(?!\w)"
    r"|(?<=[A-Za-z])~(?P<sub>\d\d?(?!~\d)|(?<=\b[A-Za-z]~)[A-Za-z\d+−-]{1,6}(?!~\w))~"
    r"|^:{3,}[ \t]*\{(?>[^{}\n]*?\btitle=\"(?P<title>[^\"{}\n]*)\")[^{}\n]*\}",
    re.M,
)
_LABEL = re.compile(r"(?<=\[\^)[^\[\]\s]+(?=\])")
# The strokes before the lines of a poem.
_LINES = re.compile(r"^\|[ \t]+(?!.*\|[ \t]*$)", re.M)
_WIDE = r"[\u2018-\u201d\u3000-\u9fff\uff00-\uffef]"
# What programs for notes and books add: links [[to|shown]] and embedded files, ==marked== words, comments, the kind of
# a callout, the fences and titles of parts, contents, templates, borders of tables; strong marks beside Han characters.
_ADDED = re.compile(
    rf"!\[\[[^\[\]\n]+\]\]|^\[\[?_?(?i:toc)_?\]?\]$|\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]+)\]\]|(?<={_WIDE})\*\*|\*\*(?={_WIDE})"
    r"|(?<![=A-Za-z0-9_])==(?![\s=])([^=\n]+)(?<!\s)==(?![=A-Za-z0-9_])|%%[^%\n]*%%|^\[!\w+\][+-]?"
    r"|^:{3,}[ \t]*(?:\{[^{}\n]*\}|[A-Za-z-]*)[ \t]*|^\+(?:[-=:]+\+)+$"
    r"|^(?:!!!|\?\?\?\+?|===[!+]?)(?:[ \t]+[A-Za-z][\w-]*)*(?:[ \t]+\"([^\"\n]*)\"|(?<=\w))[ \t]*$"
    r"|^/{3,}(?:[ \t]+[a-z][a-z-]*(?:[ \t]*\|[ \t]*(.+))?)?[ \t]*$"
    r"|\{%(?>(?:[^%{}\n]*?\btitle=\"([^\"%{}\n]*)\")?)[^%{}\n]*%\}"
    r"|\{\{[<%](?>(?:[^{}\n]*?\b(?:caption|title|alt)=\"([^\"{}\n]*)\")?)[^{}\n]*[%>]\}\}"
)
_NAMES = {
    "title": "title", "author": "author", "authors": "author", "editor": "editor", "translator": "translator",
    "date": "year", "year": "year", "publisher": "publisher", "edition": "edition", "isbn": "identifier",
}  # fmt: skip
_MOST_PEOPLE = 20
# An element in which MkDocs and kramdown read Markdown, as CommonMark does behind an empty line.
_WITH_MARKDOWN = re.compile(r"^[ \t]*<[a-z]+\b[^<>\n]*\smarkdown(?:=[\"']?\w+[\"']?)?(?:\s[^<>\n]*)?>[ \t]*$", re.M)
# Deeper quotations and lists than this are a paragraph: the parser drops what is as deep as `maxNesting`.
_DEEPEST, _MARKERS = 96, re.compile(r"^[ \t]*(?:>[ \t]*|[*+-][ \t]+)+", re.M)
_NOTE = '<div id="note-{}" role="doc-footnote">'


@component
class MarkdownFileToDocument(Converter):
    r"""
    Reads a Markdown file (CommonMark, with tables and notes) like the only chapter of a book.

    Headings become `section`, quotations, lists and tables their own kinds; notes are put where the text first refers
    to them; line breaks are kept, because poems depend on them. Front matter (YAML, TOML or Pandoc's) gives title and
    author, its abstract is text. Markup, comments, definitions of links and attributes (`{#id .class}`) are not.

    ```python
    source = ByteStream("# Tang\n\nIntro.\n\n## Rebellion\n\nIn **755**.\n".encode())
    [(d.meta["section"], d.content) for d in MarkdownFileToDocument().run([source])["documents"]]
    # [(["Tang"], "Intro."), (["Tang", "Rebellion"], "In 755.")]
    ```
    """

    def _read(self, source: ByteStream, name: str, reports: Reports) -> list[Document]:
        text = source.data.decode("utf-8-sig", "replace")
        front = _FRONT_MATTER.match(text)
        if front and (work := _stated(front)) is not None:
            text = text[front.end() :]
        else:
            work = {}
        back = _BACK_MATTER.search(text, max(0, len(text) - _LONGEST_FRONT_MATTER))
        if back and (block := _FRONT_MATTER.match(back[1])) and (stated := _stated(block)):
            text, work = text[: back.start()], stated | work
        text = f"{work.pop('abstract', '')}\n\n{text}" if "abstract" in work else text
        text = _WITH_MARKDOWN.sub("\\g<0>\n", text)
        # A comment that never ends is none: without the space that nobody sees it would hide the rest.
        last = text.rfind("-->") + 1
        text = text[:last] + text[last:].replace("<!--", "<\u200b!--")
        env: dict[str, Any] = {}
        body = _markdown().render(text, env) + "".join(env.get("own", ()))
        page, _ = parse_xhtml(f"<html><body>{body}</body></html>".encode())
        documents = page_documents(page, source, name, reports, {"work": work} if work else {})
        title = work.get("title") or next((d.meta["section"][0] for d in documents if d.meta["section"]), "")
        for document in documents:
            document.meta["title"] = document.meta.get("title") or title
        return documents


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"breaks": True, "maxNesting": _DEEPEST + 4}).enable(["table", "strikethrough"])
    reader.use(footnote_plugin, move_to_end=False).use(deflist_plugin).use(tasklists_plugin)
    # Not where a digit touches a dollar outside or a space does inside: that is money.
    reader.use(
        dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, allow_blank_lines=False,
        double_inline=True, renderer=lambda tex, _: escapeHtml(readable_tex(tex)),
    )  # fmt: skip
    reader.block.ruler.before("table", "rest", _rest)
    reader.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    reader.core.ruler.before("inline", "plain", _plain)
    reader.core.ruler.push("shown", _shown)
    reader.add_render_rule("footnote_ref", _mark)
    reader.add_render_rule("footnote_reference_open", _note)
    reader.add_render_rule("footnote_reference_close", lambda *_: "</div>")
    return reader


def _rest(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    if silent or state.level < _DEEPEST:
        return False
    while state.line < end and (state.isEmpty(state.line) or state.sCount[state.line] >= state.blkIndent):
        state.line += 1
    state.push("paragraph_open", "p", 1)
    text = state.push("inline", "", 0)
    text.content, text.children = _MARKERS.sub("", state.getLines(line, state.line, state.blkIndent, False)), []
    state.push("paragraph_close", "p", -1)
    return True


def _table(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """Put the cells beyond the columns of the header, which the parser drops, behind the last one."""
    first = len(state.tokens)
    found = table(state, line, end, silent)
    tokens = state.tokens[first:]
    width = sum(token.type == "th_open" for token in tokens)
    for cell, _, following in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if cell.type == "inline" and following.type == "tr_close" and cell.map and cell.map[0] > line:
            row = escapedSplit(getLine(state, cell.map[0]).strip())
            cell.content = " | ".join([cell.content, *map(str.strip, row[not row[0] :][width:])]).removesuffix(" | ")
    return found


def _plain(state: StateCore) -> None:
    """Leave out attributes and what is not written for readers; two lines of text above a rule are no heading."""
    notes = state.env.get("footnotes", {}).get("refs", {})
    labels = {label[1:].casefold(): label[1:] for label in reversed(notes)}
    for at, token in enumerate(state.tokens):
        if token.type == "fence" and token.info.startswith("{"):
            raw = token.info.startswith("{=")
            token.content = "" if raw and "html" not in token.info else _OPTIONS.sub("", token.content)
            if titled := _TITLED.fullmatch(token.info.strip()):
                token.content = f"{titled[1]}\n{token.content}"
            token.type = "html_block" if raw else token.type
        elif token.type == "inline":
            text = _COMPUTED.sub("(#)", token.content)
            text = _UNSEEN.sub("", _OPTIONS.sub(r"\1", text))
            text = _ATTRIBUTES.sub("", _SPAN.sub(r"\1", _WRITTEN.sub(_as_shown, text)))
            text = _LABEL.sub(
                lambda found: found[0] if f":{found[0]}" in notes else labels.get(found[0].casefold(), found[0]), text
            )
            poem = len(_LINES.findall(text)) == text.count("\n") + 1
            token.content = _LINES.sub("", text) if poem else text
        elif token.type == "list_item_open" and len(token.info) > 2:
            token.attrSet("value", token.info)  # a year
        elif token.type == "heading_open" and "\n" in state.tokens[at + 1].content:
            token.tag = state.tokens[at + 2].tag = "p"


def _as_shown(written: re.Match[str]) -> str:
    shown = next(
        (text for text in written.group("role", "code", "kept", "new", "base", "title") if text is not None), ""
    )
    sup, sub = written.group("sup", "sub")
    return f"<sup>{sup}</sup>" if sup else f"<sub>{sub}</sub>" if sub else shown.rstrip() if written["role"] else shown


def _shown(state: StateCore) -> None:
    """Leave out what is markup for other programs than CommonMark's; code keeps it."""
    for text in (child for token in state.tokens for child in token.children or () if child.type == "text"):
        for _ in range(_NESTED):
            text.content = _ADDED.sub(lambda found: next(filter(None, found.groups()), ""), text.content)


def _mark(renderer: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    number = tokens[at].meta["id"]
    if own := env["footnotes"]["list"][number].get("tokens"):  # a note that is written in the text
        env.setdefault("own", []).append(_NOTE.format(number) + renderer.render(own, options, env) + "</div>")
    return f'<sup><a href="#note-{number}" role="doc-noteref">*</a></sup>'


def _note(_: Any, tokens: Sequence[Token], at: int, *given: Any) -> str:
    return _NOTE.format(given[-1]["footnotes"]["refs"][f":{tokens[at].meta['label']}"])


def _stated(front: re.Match[str]) -> dict[str, Any] | None:
    """Return what front matter says of the work; None where it is no front matter but a text between two rules."""
    if front["pandoc"]:
        title, people, *_ = [line[1:].strip() for line in front["pandoc"].splitlines()] + ["", ""]
        return work_of({"title": title, "author": re.split(r"\s*;\s*", people)})
    written, is_toml = front["yaml"] or front["toml"] or front["json"] or "", front["toml"] is not None
    unread: dict[str, Any] | None = {} if _NAME.match(written) else None
    try:
        if len(written) > _LONGEST_FRONT_MATTER:
            return unread
        load = tomllib.loads if is_toml else json.loads if front["json"] else yaml.safe_load
        given = load(written.replace("\r", ""))
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return unread
    if not isinstance(given, dict):
        return None
    work = work_of({_NAMES[key]: _texts(value) for key, value in given.items() if key in _NAMES})
    return work | {key: value for key, value in given.items() if key == "abstract" and isinstance(value, str)}


def _texts(value: Any) -> list[str]:
    """Return a value, or those of a list; what is nested deeper may be endless."""
    values = value[:_MOST_PEOPLE] if isinstance(value, list) else [value]
    values = [each.get("name") if isinstance(each, dict) else each for each in values]
    return [str(each) for each in values if each is not None and not isinstance(each, list | dict | set | tuple)]
