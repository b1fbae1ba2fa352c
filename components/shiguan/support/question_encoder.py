"""Encodes questions for everyone in the process: waiting ones together, and each only once."""

import asyncio
import threading
from collections import OrderedDict, deque
from concurrent.futures import Future
from functools import cache

from shiguan.support.token_encoder import EncodedText, TokenEncoder, token_encoder

_REMEMBERED = 256
# A question has some 20 tokens and a hypothetical passage 200; a row of 384 numbers takes 1.5 KiB.
_REMEMBERED_ROWS = 16_384
_BATCH = 32


class QuestionEncoder:
    """
    Encodes questions as they come, with one model and one thread.

    The thread takes whatever is waiting when it is free: a lone question is encoded at once, and of questions that
    come while it works all go through the model together. There is no window of time in which a question waits for
    company. What was encoded is remembered, so that a ranker gets the token vectors of the question that an embedder
    has just encoded without a second pass through the model. Get one by `question_encoder`. Safe to use from many
    threads and event loops.

    :param encoder: What encodes; a batch of it must give for each text what it gives for that text alone.
    :param remembered: How many texts are remembered at most, the least recently wanted forgotten first.
    :param remembered_rows: How many token vectors these may have together.
    :param batch_size: How many texts go through the model at once.
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        *,
        remembered: int = _REMEMBERED,
        remembered_rows: int = _REMEMBERED_ROWS,
        batch_size: int = _BATCH,
    ) -> None:
        self.encoder = encoder
        self.remembered = remembered
        self.remembered_rows = remembered_rows
        self.batch_size = batch_size
        self._memory: OrderedDict[str, EncodedText] = OrderedDict()
        self._rows = 0
        self._waiting: deque[tuple[str, Future[EncodedText]]] = deque()
        # Guards all of the above, and tells the thread that something waits.
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def warm_up(self) -> None:
        """
        Load the model; a second call does nothing.

        :raises ConfigurationError: If it cannot be loaded.
        """
        self.encoder.warm_up()

    def encode(self, text: str) -> EncodedText:
        """
        Encode a question, and wait for it.

        :param text: Any text; what is beyond the model's window is cut.
        :returns: The embedding and the token vectors. Shared with other callers: not to be changed.
        :raises ConfigurationError: If the model cannot be loaded.
        """
        return self._submit(text).result()

    async def encode_async(self, text: str) -> EncodedText:
        """
        Encode a question without blocking the event loop.

        :param text: Any text; what is beyond the model's window is cut.
        :returns: As `encode`.
        :raises ConfigurationError: If the model cannot be loaded.
        """
        return await asyncio.wrap_future(self._submit(text))

    def _submit(self, text: str) -> Future[EncodedText]:
        # Each caller has a future of its own: a request that is cancelled must not cancel another's.
        future: Future[EncodedText] = Future()
        with self._changed:
            known = self._memory.get(text)
            if known is not None:
                self._memory.move_to_end(text)
                future.set_result(known)
                return future
            self._waiting.append((text, future))
            # A process that was forked has the queue of its parent, but not its thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="question-encoder", daemon=True)
                self._thread.start()
            self._changed.notify()
        return future

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                taken = [self._waiting.popleft() for _ in range(min(self.batch_size, len(self._waiting)))]
            wanted: dict[str, list[Future[EncodedText]]] = {}
            for text, future in taken:
                if future.set_running_or_notify_cancel():
                    wanted.setdefault(text, []).append(future)
            if wanted:
                self._answer(wanted)

    def _answer(self, wanted: dict[str, list[Future[EncodedText]]]) -> None:
        texts = list(wanted)
        try:
            encoded = self.encoder.encode(texts)
        except BaseException as error:  # whatever it is, nobody may be left waiting for this thread
            if len(texts) > 1:
                # One text that cannot be encoded must not fail the questions that happened to wait beside it.
                for text in texts:
                    self._answer({text: wanted[text]})
                return
            for future in wanted[texts[0]]:
                future.set_exception(error)
            return
        with self._changed:
            for text, result in zip(texts, encoded, strict=True):
                self._remember(text, result)
        for text, result in zip(texts, encoded, strict=True):
            for future in wanted[text]:
                future.set_result(result)

    def _remember(self, text: str, encoded: EncodedText) -> None:
        forgotten = self._memory.pop(text, None)
        self._rows += len(encoded.tokens) - (0 if forgotten is None else len(forgotten.tokens))
        self._memory[text] = encoded
        while len(self._memory) > self.remembered or self._rows > self.remembered_rows:
            _, forgotten = self._memory.popitem(last=False)
            self._rows -= len(forgotten.tokens)


@cache
def question_encoder(model: str) -> QuestionEncoder:
    """
    Give the process's encoder of questions for a model, which is loaded at its first use.

    :param model: The embedder's name in the Hugging Face cache, or its folder.
    :returns: The same encoder for every caller that names the model.
    """
    return QuestionEncoder(token_encoder(model))
