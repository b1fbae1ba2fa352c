"""
Show what the check of an answer lets through, and what it costs: with readers that are scripted instead of a model.

    python -m bench.quality.inventor [--modes simple precise] [--every N] [--misses FILE]

Over the sample book, in each mode, the generator is taken out and a script put in its place, which reads the numbered
sources of the prompt as a model would:

- **inventor**: a true sentence with its mark, and one invention, disguised in one of some forty ways in each language.
  Shown is an invention that stands in the answer without the sign of an unsupported sentence; kept is a true sentence
  that stands there, is cited, and has no such sign.
- **careless reader**: the true sentence alone, in one of some forty wrong forms. Right is one that is kept and cites a
  passage that has it, with nothing left in the text that looks like a mark and is none.

For each cited sentence of the careless reader, the cited passages are taken away and it is checked again against the
others: it must fall, unless one of them has it word for word. Every sentence that is shown has a verdict or states
nothing. What the readers say is in `golden/inventor.yml`. The exit code is 1 where a bar is missed.
"""

import argparse
import contextlib
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from haystack import Document, GeneratedAnswer
from haystack.dataclasses import ChatMessage

SCRIPT = Path(__file__).with_name("golden") / "inventor.yml"
TENANT = "evaluation"
MODES = ("simple", "precise")
_SOURCE = re.compile(r'<source number="(\d+)"[^\n]*>\n(.*?)\n</source>', re.DOTALL)
_MARK = re.compile(r" ?\[\d{1,3}\]")
_SIGN = "⚠"
# What is left of a form that was not read: a mark in another spelling, a preposition without its noun, empty brackets.
_LEFT_OVER = re.compile(
    r"doc_|\[\[|\]\]|\(\s*\)|（\s*）|\*\*\*\*|\[\^|^\[\d+\]:|【|99|\b(?:to|in|on|as|passage),? ?(?:says|,|$)"
    r"|(?:根据|正如|见)(?:，|$)|\((?:see|source)|（见?）|[：:]\s*[。.)）]|^\s*(?:,|，|states|says|that\b)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Fact:
    """A question on the book, the words in which it answers, and a true sentence that says so."""

    language: str
    question: str
    gold: str
    sentence: str
    also: str = ""


@dataclass(frozen=True)
class Case:
    """One scripted reply: `form` is to be filled with the number of the passage that holds the fact."""

    fact: Fact
    name: str
    form: str
    brings: str = ""
    keys: tuple[str, ...] = ()

    def reply(self, number: int) -> str:
        """Write the reply, with the number of its source."""
        return self.form.replace("{m}", f"[{number}]").replace("{n}", str(number))


@dataclass(frozen=True)
class Outcome:
    """What became of a reply."""

    case: Case
    answer: str
    status: str
    kept: bool
    cited: bool
    shown: bool
    tidy: bool
    falls: tuple[bool, ...] = ()
    unjudged: tuple[str, ...] = ()


def read_script(path: Path = SCRIPT) -> dict[str, Any]:
    """Read what the readers say."""
    script: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return script


def facts_of(script: dict[str, Any], language: str) -> list[Fact]:
    """Read the facts in a language."""
    return [Fact(language, row["q"], row["gold"], row["s"], row.get("also", "")) for row in script["facts"][language]]


def inventions(script: dict[str, Any]) -> list[Case]:
    """Give every disguise of every invention, each behind one of the facts in turn."""
    cases = []
    for language, other in (("en", "zh"), ("zh", "en")):
        facts = facts_of(script, language)
        for place, (name, form) in enumerate(script["disguises"][language].items()):
            both = zip(script["inventions"][language], script["inventions"][other], strict=True)
            for at, (row, foreign) in enumerate(both):
                fact = facts[(place + at) % len(facts)]
                parts = {"s": fact.sentence, "i": row["i"], "I": _capital(row["i"]), "h": row["h"], "x": foreign["i"]}
                keys = tuple(foreign["key"] if "{x}" in form else row["key"])
                cases.append(Case(fact, name, _filled(form, parts), row["brings"], keys))
    return cases


def careless(script: dict[str, Any]) -> list[Case]:
    """Give every fact in every wrong form."""
    return [
        Case(fact, name, _filled(form, {"s": fact.sentence}))
        for language in ("en", "zh")
        for name, form in script["careless"][language].items()
        for fact in facts_of(script, language)
    ]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _filled(form: str, parts: dict[str, str]) -> str:
    for name, text in parts.items():
        form = form.replace(f"{{{name}}}", text)
    return form


class ScriptedModel:
    """Says what a case has, with the number of the passage of the prompt that holds its fact."""

    def __init__(self) -> None:
        """Wait for a case."""
        self.case: Case | None = None
        self.number = 0

    def run(self, messages: list[ChatMessage] | str, **_: Any) -> dict[str, Any]:
        """Reply to a prompt; without the fact among its sources with the number 0, which no source has."""
        assert self.case is not None
        prompt = messages if isinstance(messages, str) else "\n".join(message.text or "" for message in messages)
        gold = "".join(self.case.fact.gold.split())
        has = [int(number) for number, text in _SOURCE.findall(prompt) if gold in "".join(text.split())]
        self.number = has[0] if has else 0
        return {"replies": [ChatMessage.from_assistant(self.case.reply(self.number))]}

    async def run_async(self, messages: list[ChatMessage] | str, **more: Any) -> dict[str, Any]:
        """Do as `run`."""
        return self.run(messages, **more)


def put_in(pipeline: Any, model: ScriptedModel) -> str:
    """
    Put the scripted model in the place of the generator, and silence every other one.

    The generator is the stage that takes `messages` and gives `replies` and stands before the one that gives `answers`.
    """
    nodes, edges = pipeline.graph.nodes, pipeline.graph
    ends = {
        name for name in nodes if {"replies"} <= nodes[name]["input_sockets"].keys() and _gives(nodes, name, "answers")
    }
    before = set(ends)
    while more := {sender for sender, receiver, _ in edges.edges(keys=True) if receiver in before} - before:
        before |= more
    found = [name for name in before if "messages" in nodes[name]["input_sockets"] and _gives(nodes, name, "replies")]
    if len(found) != 1:
        raise LookupError(f"Expected one generator before {sorted(ends)}, found {sorted(found)}.")
    for name in nodes:
        _silence(nodes[name]["instance"], set())
    instance = nodes[found[0]]["instance"]
    instance.run, instance.run_async = model.run, model.run_async
    return found[0]


def _gives(nodes: Any, name: str, socket: str) -> bool:
    return socket in nodes[name]["output_sockets"]


def _silence(part: Any, seen: set[int]) -> None:
    """Let no generator within a component be called: one is scripted, and there is no other."""
    for inner in getattr(part, "__dict__", {}).values():
        if id(inner) in seen or not type(inner).__module__.startswith("shiguan."):
            continue
        seen.add(id(inner))
        if callable(getattr(inner, "available", None)):
            inner.available = lambda: False
        _silence(inner, seen)


def plain(text: str) -> str:
    """Take marks, signs, emphasis and white space off a text, so that words can be found in it."""
    return re.sub(r"[\s*`|>#_]+", " ", _MARK.sub("", text).replace(f" {_SIGN}", "").replace(_SIGN, "")).strip()


def outcome(case: Case, answer: GeneratedAnswer) -> Outcome:
    """Tell what became of a case's true sentence and of its invention."""
    text, meta = plain(answer.data), answer.meta
    claims = [(plain(claim["text"]), claim) for claim in meta.get("claims", ())]
    sentence = plain(case.fact.sentence)

    def whole(part: str) -> bool:
        return bool(part) and (sentence.lower() in part.lower() or _squeezed(sentence) in _squeezed(part))

    own = [claim for part, claim in claims if whole(part)]
    # A sentence with a semicolon may be two claims.
    own = own or [claim for part, claim in claims if len(part) > 3 and _squeezed(part) in _squeezed(sentence)]
    good = bool(own) and all(
        claim["verdict"] in ("supported", "partial") and _SIGN not in claim["text"] for claim in own
    )
    has = {
        document.meta.get("number")
        for document in answer.documents
        if _squeezed(case.fact.gold) in _squeezed(document.content or "")
    }
    numbers = {number for claim in own for number in claim["numbers"]}
    keys = [key for key in case.keys if key in text]
    signed = [
        part for part, claim in claims if claim["verdict"] in ("unsupported", "contradicted") and _SIGN in claim["text"]
    ]
    shown = any(text.count(key) > sum(part.count(key) for part in signed) for key in keys)
    return Outcome(
        case,
        answer.data,
        str(meta.get("status")),
        kept=good and whole(text),
        cited=bool(numbers & has),
        shown=shown,
        tidy=not _LEFT_OVER.search(answer.data),
        falls=tuple(falls(claim, answer.documents, case.fact) for claim in own if claim["numbers"])
        if not case.keys
        else (),
        unjudged=tuple(unjudged(answer, case.fact.question)),
    )


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def falls(claim: dict[str, Any], documents: Sequence[Document], fact: Fact) -> bool:
    """Tell whether a cited sentence falls when its passages are taken away; what another one repeats may stand."""
    from shiguan.claims.checker import checker_of, numbered_passages

    rest = {number: one for number, one in numbered_passages(documents).items() if number not in claim["numbers"]}
    words = plain(claim["text"])
    same = {_squeezed(words), _squeezed(fact.also)} - {""}
    if any(part in _squeezed(one.content or "") for one in rest.values() for part in same):
        return True
    checker = checker_of(rest)
    return any(one.support.verdict != "supported" for one in checker.check(checker.split(words)))


def unjudged(answer: GeneratedAnswer, question: str) -> Iterator[str]:
    """Give the sentences of an answer that have no verdict although they bring what question and passages lack."""
    from shiguan.claims.checker import checker_of, numbered_passages
    from shiguan.claims.claims import split_claims

    judged = [plain(claim["text"]) for claim in answer.meta.get("claims", ())]
    if answer.meta.get("status") != "answered":
        return
    checker = checker_of(numbered_passages(answer.documents), question)
    for claim in split_claims(answer.data, question).claims:
        if not any(plain(claim.text) in one or one in plain(claim.text) for one in judged) and checker.stated(claim):
            yield claim.text


@dataclass
class Tally:
    """The outcomes of one mode."""

    mode: str
    invented: list[Outcome] = field(default_factory=list)
    careless: list[Outcome] = field(default_factory=list)
    not_read: int = 0

    def rows(self) -> list[tuple[str, float, int, float | None, bool]]:
        """Give the measures: name, value, cases, bar, and whether a lower value is better."""
        bringing = [one for one in self.invented if one.case.brings in ("name", "number", "date")]
        every = 0.0 if self.mode == "precise" else 0.01
        tumbled = [fall for one in self.careless for fall in one.falls]
        answers = [*self.invented, *self.careless]
        return [
            ("inventions with a new name, number or date shown", _share(bringing, "shown"), len(bringing), 0.0, True),
            ("inventions shown", _share(self.invented, "shown"), len(self.invented), every, True),
            ("true sentences lost or marked beside one", 1 - _share(self.invented, "kept"), len(self.invented), 0.02,
             True),
            ("careless reader: kept", _share(self.careless, "kept"), len(self.careless), None, False),
            ("careless reader: kept and cited right", _share(self.careless, "kept", "cited"), len(self.careless), 0.98,
             False),
            ("careless reader: and nothing odd is left", _share(self.careless, "kept", "cited", "tidy"),
             len(self.careless), None, False),
            ("cited passage removed: falls", sum(tumbled) / max(1, len(tumbled)), len(tumbled), 0.95, False),
            ("answers with a sentence that is neither judged nor harmless",
             _share(answers, "unjudged"), len(answers), 0.0, True),
        ]  # fmt: skip


def _share(outcomes: Iterable[Outcome], *names: str) -> float:
    every = list(outcomes)
    return sum(all(getattr(one, name) for name in names) for one in every) / max(1, len(every))


@contextlib.contextmanager
def sample_library() -> Iterator[Path]:
    """Put the sample book into a library that is thrown away."""
    from examples.build_book import build_book

    from shiguan.evaluation.provenance import ingest_corpus
    from shiguan.stores.embedded.shards import close_all_shards

    with tempfile.TemporaryDirectory(prefix="shiguan-inventor-") as folder, contextlib.ExitStack() as stack:
        stack.callback(close_all_shards)  # before their folder is removed
        book = build_book(Path(folder) / "an-lushan-rebellion.epub")
        ingest_corpus([book], deployment="embedded", data_dir=Path(folder) / "library")
        yield Path(folder) / "library"


def measured(mode: str, library: Path, cases: Sequence[tuple[bool, Case]]) -> Tally:
    """Ask a mode every case."""
    from shiguan.engine.runner import Runner

    # The gate must find that there is a model; nobody calls it.
    os.environ.setdefault("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    tally = Tally(mode)
    model = ScriptedModel()
    with Runner("embedded", mode, data_dir=library) as runner:
        put_in(runner.pipeline, model)
        for is_invented, case in cases:
            model.case, model.number = case, 0
            answer: GeneratedAnswer = runner.trace(case.fact.question, tenant_id=TENANT, outputs=["answers"])[
                "outputs"
            ]["answers"][0]
            if not model.number:
                tally.not_read += 1
                continue
            (tally.invented if is_invented else tally.careless).append(outcome(case, answer))
    return tally


def table(tallies: Sequence[Tally]) -> str:
    """Write the table in Markdown."""
    lines = ["| mode | what | cases | value | bar |", "|---|---|---:|---:|---:|"]
    for tally in tallies:
        for name, value, count, bar, low in tally.rows():
            sign = "" if bar is None else f"{'≤' if low else '≥'} {bar:g}"
            missed = "" if holds(value, bar, low=low) else " (missed)"
            lines.append(f"| {tally.mode} | {name} | {count} | {value:.3f}{missed} | {sign} |")
        lines.append(f"| {tally.mode} | replies whose passage was not read | {tally.not_read} | | |")
    return "\n".join(lines)


def holds(value: float, bar: float | None, *, low: bool) -> bool:
    """Tell whether a value holds its bar."""
    return bar is None or (value <= bar if low else value >= bar)


def misses(tally: Tally) -> Iterator[dict[str, Any]]:
    """Give the cases that went wrong, to be read."""
    for kind, outcomes in (("invented", tally.invented), ("careless", tally.careless)):
        for one in outcomes:
            wrong = [
                name
                for name, bad in (
                    ("shown", one.shown),
                    ("lost", not one.kept),
                    ("uncited", kind == "careless" and not one.cited),
                    ("untidy", kind == "careless" and not one.tidy),
                    ("stands", not all(one.falls)),
                    ("unjudged", bool(one.unjudged)),
                )
                if bad
            ]
            if wrong:
                yield {
                    "mode": tally.mode,
                    "kind": kind,
                    "wrong": wrong,
                    "form": one.case.name,
                    "brings": one.case.brings,
                    "reply": one.case.reply(1),
                    "answer": one.answer,
                    "status": one.status,
                    "unjudged": one.unjudged,
                }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", nargs="+", default=list(MODES))
    parser.add_argument("--every", type=int, default=1, help="take one case in so many (default: all)")
    parser.add_argument("--misses", type=Path, help="write what went wrong here, a line a case")
    chosen = parser.parse_args(arguments)
    script = read_script()
    cases = [*((True, case) for case in inventions(script)), *((False, case) for case in careless(script))]
    with sample_library() as library:
        tallies = [measured(mode, library, cases[:: chosen.every]) for mode in chosen.modes]
    print(table(tallies))
    for tally in tallies:
        forms = Counter(f"{one.case.fact.language} {one.case.name}" for one in tally.invented if one.shown)
        print(
            f"\n{tally.mode}, shown by disguise: " + ", ".join(f"{name} {count}" for name, count in forms.most_common())
        )
    if chosen.misses:
        lines = [json.dumps(row, ensure_ascii=False) for tally in tallies for row in misses(tally)]
        chosen.misses.write_text("\n".join(lines) + "\n", encoding="utf-8")
    held = all(holds(value, bar, low=low) for tally in tallies for _, value, _, bar, low in tally.rows())
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
