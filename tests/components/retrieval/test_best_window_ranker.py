import pytest
from haystack import Document, Pipeline
from haystack.components.rankers.transformers_similarity import TransformersSimilarityRanker

from shiguan.retrieval import best_window_ranker
from shiguan.retrieval.best_window_ranker import BestWindowRanker

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "salt", "tax", "iron", "silk", "the", "."]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """A cross-encoder with random weights over eleven words, saved as any other model."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("cross-encoder")
    vocabulary = {word: index for index, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
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
    model_name_or_path = "counting"

    def __init__(self):
        self.model = object()
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


def ranker(**parameters):
    return BestWindowRanker(Counting(), **parameters)


def names(result):
    return [document.id for document in result["documents"]]


def test_a_long_passage_is_scored_by_its_best_window():
    long = passage("long", "Iron is hard. " * 60 + "Salt salt salt salt. ".lower() + "Silk is soft. " * 60)
    short = passage("short", "The salt of the sea.")
    result = ranker(window_characters=60, windows_per_passage=200).run("salt", [short, long])
    assert names(result) == ["long", "short"]
    assert result["documents"][1].score == pytest.approx(1 / 5)


def test_windows_with_matched_children_are_scored_first():
    text = "iron . " * 40 + "Salt tax. " + "iron . " * 40
    at = text.index("Salt")
    matched = passage("matched", text, matches=[{"start": at, "end": at + 9, "child_id": "c", "score": 1.0}])
    model = Counting()
    BestWindowRanker(model, window_characters=30, windows_per_passage=1).run("salt", [matched])
    assert sum(len(batch) for batch in model.batches) == 1


def test_windows_go_to_the_model_sorted_by_length():
    model = Counting()
    passages = [passage(str(i), "salt " * length) for i, length in enumerate([9, 1, 7, 3, 5, 2, 8])]
    BestWindowRanker(model).run("salt", passages)
    lengths = [length for batch in model.batches for length in batch]
    assert lengths == sorted(lengths)
    assert [len(batch) for batch in model.batches] == [4, 3]


def test_equal_scores_keep_the_order_they_came_in():
    passages = [passage("b", "iron"), passage("a", "silk"), passage("c", "salt")]
    result = ranker().run("salt", passages)
    assert names(result) == ["c", "b", "a"]
    assert result["ranking"][0] == {
        "id": "c", "rank_before": 3, "rank": 1, "score": 1.0, "ranked_by": "cross_encoder",
    }  # fmt: skip


def test_a_language_that_the_model_does_not_know_keeps_the_fused_order():
    passages = [passage("a", "鐵", 0.9), passage("b", "鹽", 0.8), passage("c", "salt", 0.7)]
    result = ranker(languages=["en"], top_k=2).run("鹽稅始於何時？", passages)
    assert [(document.id, document.score) for document in result["documents"]] == [("a", 0.9), ("b", 0.8)]
    assert result["skipped"] == "the cross-encoder `counting` knows en, the question is in zh"
    assert result["warnings"] == [f"Passages stand in the order of the fusion: {result['skipped']}."]
    assert [entry["ranked_by"] for entry in result["ranking"]] == ["fusion", "fusion"]


def test_no_passages_are_no_case_for_the_model():
    model = Counting()
    assert BestWindowRanker(model).run("salt", []) == {"documents": [], "ranking": [], "skipped": "", "warnings": []}
    assert model.batches == []


def test_top_k_of_the_call_overrides_that_of_the_pipeline():
    passages = [passage("a", "iron"), passage("b", "salt")]
    assert names(ranker(top_k=2).run("salt", passages, top_k=1)) == ["b"]


def test_inputs_are_not_changed():
    given = passage("a", "salt", 0.25)
    ranker().run("salt", [given])
    assert given.score == 0.25


@pytest.mark.parametrize("text", ["", "   ", "。", "字" * 5000, "x" * 5000])
def test_any_passage_has_a_window(text):
    assert len(ranker().run("salt", [passage("a", text)])["documents"]) == 1


@pytest.mark.transformers
def test_a_model_that_cannot_be_loaded_gives_the_fused_order_and_is_tried_again(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(best_window_ranker.time, "monotonic", lambda: clock[0])
    tries = []
    real = TransformersSimilarityRanker.warm_up
    monkeypatch.setattr(TransformersSimilarityRanker, "warm_up", lambda self: (tries.append(1), real(self)))
    missing = BestWindowRanker(TransformersSimilarityRanker(model=str(tmp_path / "absent")), retry_seconds=60)
    passages = [passage("a", "iron", 0.9), passage("b", "salt", 0.8)]
    result = missing.run("salt", passages)
    assert names(result) == ["a", "b"]
    assert result["warnings"] == [
        f"Passages stand in the order of the fusion: the cross-encoder `{tmp_path / 'absent'}` is left out, its files "
        "are not on this machine."
    ]
    missing.run("salt", passages)
    assert len(tries) == 1
    clock[0] = 61.0
    missing.run("salt", passages)
    assert len(tries) == 2


@pytest.mark.transformers
def test_a_real_cross_encoder_scores_and_is_loaded_once_per_process(tiny_model):
    first = BestWindowRanker(TransformersSimilarityRanker(model=tiny_model))
    second = BestWindowRanker(TransformersSimilarityRanker(model=tiny_model))
    passages = [passage("a", "the salt tax ."), passage("b", "the iron ."), passage("c", "silk")]
    result = first.run("salt tax", passages)
    assert sorted(names(result)) == ["a", "b", "c"]
    assert all(0 < document.score < 1 for document in result["documents"])
    scores = [document.score for document in result["documents"]]
    assert scores == sorted(scores, reverse=True)
    assert second.run("salt tax", passages) == result
    assert first.ranker.model is second.ranker.model


@pytest.mark.transformers
def test_it_round_trips_through_yaml(tiny_model):
    pipeline = Pipeline()
    pipeline.add_component("ranker", BestWindowRanker(TransformersSimilarityRanker(model=tiny_model), languages=["en"]))
    loaded = Pipeline.loads(pipeline.dumps()).get_component("ranker")
    assert (loaded.languages, loaded.top_k, loaded.ranker.model_name_or_path) == (["en"], 5, tiny_model)


@pytest.mark.parametrize(
    "parameters", [{"top_k": 0}, {"window_characters": 0}, {"windows_per_passage": 0}, {"languages": []}]
)
def test_parameters_out_of_range_are_refused(parameters):
    with pytest.raises(ValueError, match=f"`{next(iter(parameters))}`"):
        ranker(**parameters)
