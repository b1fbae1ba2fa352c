"""What each metric is called, what it says, and which way is better."""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["share", "tokens", "ms", "calls", "money"]


@dataclass(frozen=True)
class Metric:
    """How a metric is shown and read."""

    label: str
    meaning: str
    unit: Unit = "share"
    higher_is_better: bool = True
    judged: bool = False

    def format(self, value: float, *, signed: bool = False) -> str:
        """Write a value as people read it."""
        sign = "+" if signed else ""
        if self.unit == "share":
            return f"{value:{sign}.3f}"
        if self.unit == "money":
            return f"{value:{sign}.5f}"
        return f"{value:{sign},.0f}" if abs(value) >= 100 else f"{value:{sign},.1f}"


KNOWN: dict[str, Metric] = {
    **{
        f"recall@{k}": Metric(f"Recall@{k}", f"share of the gold documents among the first {k} passages")
        for k in (1, 5, 10, 20)
    },
    "ndcg@10": Metric("nDCG@10", "gain of the first 10 passages, early ones count more, against the ideal order"),
    "mrr@10": Metric("MRR@10", "one over the rank of the first right passage"),
    "all_gold@10": Metric("All gold@10", "share of questions with every gold document among the first 10 passages"),
    "context_recall": Metric("Context recall", "share of the gold documents whose answer stands in the context"),
    "context_precision": Metric("Context precision", "share of the context's passages that hold an answer"),
    "context_tokens": Metric("Context tokens", "length of the context", "tokens", higher_is_better=False),
    "exact_match": Metric("Exact match", "share of answers equal to a right one"),
    "token_f1": Metric("Token F1", "overlap of the answer's words (Chinese: characters) with a right one"),
    "correct": Metric("Correct", "share of questions answered rightly, or rightly refused"),
    "contains_answer": Metric("Holds the answer", "share of answers that hold a right one word for word"),
    "gold_read": Metric("Gold read", "share of the gold passages that stand in the context"),
    "gold_cited": Metric("Gold cited", "share of the gold passages that the answer cites"),
    "citation_precision": Metric("Citation precision", "share of citations whose passage supports the claim"),
    "citation_recall": Metric("Citation recall", "share of claims that their citations support"),
    "claims_supported": Metric("Claims supported", "share of claims with the verdict `supported`"),
    "correct_refusal": Metric("Correct refusals", "share of the unanswerable questions that were refused"),
    "false_refusal": Metric("False refusals", "share of the answerable questions refused", higher_is_better=False),
    "tenant_kept": Metric("Tenant kept", "share of questions that show nothing of another tenant"),
    "haystack_faithfulness": Metric("Faithfulness (Haystack)", "statements that the context supports", judged=True),
    "haystack_context_relevance": Metric("Context relevance (Haystack)", "context to the question", judged=True),
    "ragas_faithfulness": Metric("Faithfulness (Ragas)", "claims that the context supports", judged=True),
    "ragas_answer_relevancy": Metric("Answer relevancy (Ragas)", "whether the question is answered", judged=True),
    "ragas_context_precision": Metric("Context precision (Ragas)", "useful passages come first", judged=True),
    "ragas_context_recall": Metric("Context recall (Ragas)", "the right answer stands in the context", judged=True),
    "latency_ms": Metric("Latency", "from question to result", "ms", higher_is_better=False),
    "llm_calls": Metric("LLM calls", "calls to a language model per question", "calls", higher_is_better=False),
    "cost": Metric("Cost", "price of the calls per question", "money", higher_is_better=False),
}
"""The metrics that Shiguan computes."""


def metric(name: str) -> Metric:
    """Look a metric up."""
    return KNOWN.get(name) or Metric(name.replace("_", " "), "")
