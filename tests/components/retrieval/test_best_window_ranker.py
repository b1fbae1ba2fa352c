import subprocess
import sys

import pytest
from haystack import Document

from shiguan.retrieval import best_window_ranker
from shiguan.retrieval.best_window_ranker import BestWindowRanker

RANKER = "haystack.components.rankers.transformers_similarity.TransformersSimilarityRanker"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "salt", "tax", "iron", "silk", "the", "."]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """A cross-encoder with random weights over eleven words, saved as any other model."""
    torch = pytest.importorskip("torch", reason="needs `shiguan[transformers]`")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("cross-encoder")
    vocabulary = {word: index for index, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=512,
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        num_labels=1, pad_token_id=0,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    return str(folder)


class Counting:
    """Stands for the model: a window scores its share of the word `salt`, and every batch is written down."""

    batch_size = 4

    def __init__(self):
        self.batches = []

    def run(self, query, documents, top_k):
        self.batches.append([len(document.content) for document in documents])
        scored = [
            Document(id=d.id, content=d.content, score=d.content.count("salt") / max(1, len(d.content.split())))
            for d in documents
        ]
        return {"documents": scored}


def passage(name, text, score=0.5, **meta):
    return Document(id=name, content=text, score=score, meta=meta)


def around(model, **parameters):
    """What a file says of the ranker inside."""
    return {"type": RANKER, "init_parameters": {"model": model, **parameters}}


def ranker(model=None, **parameters):
    made = BestWindowRanker(around("counting"), **parameters)
    made._ranker = model or Counting()
    return made


def names(result):
    return [document.id for document in result["documents"]]


def test_a_long_passage_is_scored_by_its_best_window(monkeypatch):
    monkeypatch.setattr(best_window_ranker, "_WINDOW_CHARACTERS", 60)
    monkeypatch.setattr(best_window_ranker, "_WINDOWS", 200)
    long = passage("long", "Iron is hard. " * 60 + "Salt salt salt salt. ".lower() + "Silk is soft. " * 60)
    short = passage("short", "The salt of the sea.")
    result = ranker().run("salt", [short, long])
    assert names(result) == ["long", "short"]
    assert result["documents"][1].score == pytest.approx(1 / 5)


def test_windows_with_matched_children_are_scored_first(monkeypatch):
    monkeypatch.setattr(best_window_ranker, "_WINDOW_CHARACTERS", 30)
    monkeypatch.setattr(best_window_ranker, "_WINDOWS", 1)
    text = "Iron. " * 40 + "Salt: the salt tax. " + "Iron. " * 40
    at = text.index("Salt")
    matched = passage("matched", text, matches=[{"start": at, "end": at + 9, "child_id": "c", "score": 1.0}])
    (found,) = ranker().run("salt", [matched])["documents"]
    assert found.score > 0  # no other window has salt


@pytest.mark.parametrize("matches", [None, [], [{}], ["c"]])
def test_a_match_without_a_place_costs_no_ranking(matches):
    result = ranker().run("salt", [passage("a", "Iron. Salt.", matches=matches)])
    assert result["warnings"] == []


def test_windows_go_to_the_model_sorted_by_length():
    model = Counting()
    passages = [passage(str(i), "salt " * length) for i, length in enumerate([9, 1, 7, 3, 5, 2, 8])]
    ranker(model).run("salt", passages)
    lengths = [length for batch in model.batches for length in batch]
    assert lengths == sorted(lengths)
    assert [len(batch) for batch in model.batches] == [4, 3]


def test_equal_scores_keep_the_order_they_came_in_and_inputs_are_not_changed():
    passages = [passage("b", "iron", 0.25), passage("a", "silk"), passage("c", "salt")]
    result = ranker().run("salt", passages)
    assert names(result) == ["c", "b", "a"]
    assert (result["documents"][0].score, result["documents"][0].meta["ranked_by"]) == (1.0, "cross_encoder")
    assert (passages[0].score, passages[0].meta) == (0.25, {})
    assert names(ranker(top_k=2).run("salt", passages, top_k=1)) == ["c"]
    model = Counting()
    assert (ranker(model).run("salt", []), model.batches) == ({"documents": [], "warnings": []}, [])


@pytest.mark.parametrize("text", ["", "   ", "。", "字" * 5000, "x" * 5000])
def test_any_passage_has_a_window(text):
    assert len(ranker().run("salt", [passage("a", text)])["documents"]) == 1


PASSAGES = [passage("a", "iron", 0.9), passage("b", "salt", 0.8)]


@pytest.mark.parametrize(
    ("model", "package"),
    [("cross-encoder/of-nobody", "json"), ("no/such/folder", "json"), ("../nowhere", "json"), ("/", "no_such_package")],
)
def test_without_weights_or_the_extra_the_fused_order_stays_without_a_warning(model, package, monkeypatch):
    monkeypatch.setattr(best_window_ranker, "_PACKAGES", ("json", package))
    result = BestWindowRanker(around(model), top_k=1).run("salt", PASSAGES)
    assert [(document.id, document.score) for document in result["documents"]] == [("a", 0.9)]
    assert result["documents"][0].meta["ranked_by"] == "fusion"
    assert result["warnings"] == []


@pytest.mark.transformers
def test_neither_building_nor_running_it_without_weights_imports_torch():
    """In a process of its own, in which the packages are there."""
    program = (
        "import sys\n"
        "from haystack import Document, Pipeline\n"
        "from shiguan.retrieval.best_window_ranker import BestWindowRanker\n"
        "before = sys.modules.get('torch')\n"
        "pipeline = Pipeline()\n"
        f"pipeline.add_component('ranker', BestWindowRanker({around('of/nobody')!r}))\n"
        "ranker = Pipeline.loads(pipeline.dumps()).get_component('ranker')\n"
        "assert ranker.run('q', [Document(content='a')])['documents'][0].meta['ranked_by'] == 'fusion'\n"
        "assert sys.modules.get('torch') is before\n"
        "assert sys.modules.get('transformers') is None\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_model_that_cannot_be_loaded_gives_the_fused_order_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(best_window_ranker, "_PACKAGES", ("json",))
    tries = []

    def load(parameters):
        tries.append(parameters)
        raise RuntimeError("half a file\nand more")

    monkeypatch.setattr(best_window_ranker, "_load", load)
    broken = BestWindowRanker(around(str(tmp_path), batch_size=2))
    result = broken.run("salt", PASSAGES)
    assert names(result) == ["a", "b"]
    assert result["warnings"] == [
        f"Passages are in the order of the fusion: the cross-encoder `{tmp_path}` is left out, it could not be loaded "
        "(RuntimeError: half a file)."
    ]
    assert broken.run("salt", PASSAGES) == result
    assert tries == [{"model": str(tmp_path), "batch_size": 2}]


def test_a_model_that_breaks_down_on_a_question_costs_the_order_and_not_the_answer():
    class Broken(Counting):
        def run(self, query, documents, top_k):
            raise RuntimeError("out of memory")

    result = ranker(Broken()).run("salt", PASSAGES)
    assert names(result) == ["a", "b"]
    warning = "Passages are in the order of the fusion: the cross-encoder `counting` failed (RuntimeError)."
    assert result["warnings"] == [warning]


@pytest.mark.transformers
def test_a_real_cross_encoder_scores_and_is_loaded_once_per_process(tiny_model):
    first = BestWindowRanker(around(tiny_model))
    second = BestWindowRanker(around(tiny_model))
    passages = [passage("a", "the salt tax ."), passage("b", "the iron ."), passage("c", "silk")]
    result = first.run("salt tax", passages)
    assert sorted(names(result)) == ["a", "b", "c"]
    assert all(0 < document.score < 1 for document in result["documents"])
    scores = [document.score for document in result["documents"]]
    assert scores == sorted(scores, reverse=True)
    assert second.run("salt tax", passages) == result
    assert first._ranker is second._ranker
