"""Has the model answer without the library, where that cannot be searched and the caller allows it."""

import time

from haystack import GeneratedAnswer

from shiguan.claims.marks import neutral_answer
from shiguan.engine.mode import Mode
from shiguan.engine.options import AskOptions
from shiguan.llm.calls import ask_llm_async, is_available
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.run import Run
from shiguan.llm.source_blocks import neutral_text
from shiguan.reading.text import read_text
from shiguan.resources import read_texts


async def answer_without_search(mode: Mode, query: str, options: AskOptions, run: Run) -> GeneratedAnswer | None:
    """Ask the model that answers, in one call with the question alone; None if it gives no answer."""
    if not is_available(mode.writer):
        return None
    language = options.language or read_text(query).language
    messages = render_prompt("unsearched", query=neutral_text(query), language=language)
    began = time.perf_counter()
    run.resume()
    with run.entered(), run.stage(mode.generator):
        reply = await ask_llm_async(mode.writer, messages, generation_kwargs=options.writing(), helper=False)
    run.times["total"] = (time.perf_counter() - began) * 1000
    said = neutral_answer(reply.text, ())
    if not said:
        return None
    sentences = read_texts("unsearched")
    first = sentences["zh" if language == "zh" else "en"]["search_failed"]
    meta = {"status": "unsearched", "reason": "search_failed", "language": language}
    return GeneratedAnswer(
        data=f"{first}\n\n{said}", query=query, documents=[], meta={**meta, "model": run.calls[-1].get("model")}
    )
