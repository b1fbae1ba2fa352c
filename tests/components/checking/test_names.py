"""The engine finds the parts of a mode by their names, so a part under another name is refused with the name to write."""

import pytest
from tests.security.mutant_parts import checked, load
from tests.security.tenant_mutants import PIPELINES


def renamed(data, old, new):
    """The same file with another name for one component."""

    def at(socket):
        component, _, rest = socket.partition(".")
        return f"{new if component == old else component}.{rest}"

    return {
        "components": {new if name == old else name: spec for name, spec in data["components"].items()},
        "connections": [{end: at(socket) for end, socket in edge.items()} for edge in data["connections"]],
        "inputs": {name: [at(target) for target in targets] for name, targets in data["inputs"].items()},
        "outputs": {name: at(target) for name, target in data["outputs"].items()},
    }


@pytest.mark.parametrize(
    ("mode", "old", "new", "problem", "step"),
    [
        ("simple", "generator", "llm", "`llm` writes the answer under another name.", "Write `generator` for it"),
        ("agent", "agent", "robot", "`robot` writes the answer under another name.", "Write `generator` for it"),
        ("precise", "hallucination_grader", "judge", "`judge` may reject an answer under another name.", "Write `hallucination_grader` for it"),
        ("simple", "conversation", "chat", "`chat` reads conversations under another name.", "Write `conversation` for it"),
    ],
)  # fmt: skip
def test_a_part_under_another_name_is_refused_with_the_name_to_write(mode, old, new, problem, step, tmp_path):
    (finding,) = checked(renamed(load(PIPELINES / "embedded" / f"{mode}.yml"), old, new), tmp_path).findings
    assert (finding.problem, finding.unsafe) == (problem, False)
    assert finding.next_step.startswith(step)


def test_any_other_part_may_have_any_name(tmp_path):
    data = load(PIPELINES / "embedded" / "precise.yml")
    for name in set(data["components"]) - {"generator", "hallucination_grader", "conversation"}:
        assert checked(renamed(data, name, f"my_{name}"), tmp_path).findings == [], name
