"""
CitationExtractor.

Comes after a generator and checks its answer sentence by sentence. Marks in many spellings become `[1]`; a mark whose
passage does not support its sentence is replaced by one that does, or removed; a sentence that nothing supports ends
in `⚠`. Every citation carries the exact span of its passage and a verdict. No model is asked.

`replies` are texts, as `AnswerBuilder` takes them, or chat messages. Without a reply the closest passages are quoted
word for word, as an answer (`quoted`) or, if that is doubtful, as `closest`; with the `document_store` of the children
it says which names of the question occur nowhere in the library.

It prints:

    According to the source [1], Zhang Xun held Suiyang in 757. Guo Ziyi retook Luoyang. [2] He was born in Paris ⚠.
    1 supported Zhang Xun held Suiyang in 757.
    2 supported Guo Ziyi retook Luoyang on 3 December.
"""

from haystack.dataclasses import Document

from shiguan.answer.citation_extractor import CitationExtractor

documents = [
    Document(content="Zhang Xun held Suiyang in 757. The town fell in the autumn.", meta={"source": "tang.epub"}),
    Document(content="Guo Ziyi retook Luoyang on 3 December.", meta={"source": "tang.epub"}),
]
reply = "According to [doc_1], Zhang Xun held Suiyang in 757. Guo Ziyi retook Luoyang. He was born in Paris [2]."
answer = CitationExtractor().run(replies=[reply], documents=documents)["answers"][0]
print(answer.data)
for citation in answer.meta["citations"]:
    print(citation["number"], citation["verdict"], citation["quote"])
