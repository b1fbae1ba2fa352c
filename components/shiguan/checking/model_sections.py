"""What a file says of models, budgets and caches: who they are, who calls them, what is given up, what is kept."""

from collections.abc import Iterator

from pydantic import BaseModel, ValidationError

from shiguan.checking.definition import Definition
from shiguan.checking.reading import Finding, flaw, shortened
from shiguan.llm.model_settings import BudgetPlan, CachePlan, model_faults

_DOCS = "docs/models.md shows how it looks."


def check_models(definition: Definition) -> Iterator[Finding]:
    """Find `models` sections that name nobody, give a role to a stranger, or would send a secret somewhere."""
    for part in [part for component in definition.components.values() for part in (component, *component.inner)]:
        section = part.parameters.get("models")
        if not part.type.startswith("shiguan.") or section is None:
            continue
        for place, problem in model_faults(section):
            where = (*part.place, "init_parameters", "models", *place)
            what = shortened(place[-1]) if place else "models"
            kind = Finding if what in ("key_variable", "base_url") else flaw
            yield kind(
                where, f"`{what}`: {shortened(problem, 200)}.", f"Expected a `models` section: {_DOCS}", "Correct it."
            )


def _faults(definition: Definition, name: str, plan: type[BaseModel], expected: str) -> Iterator[Finding]:
    try:
        plan.model_validate(definition.file.content.get(name) or {})
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            what = shortened(fault["loc"][-1] if fault["loc"] else name)
            problem = f"`{what}`: {shortened(fault['msg'], 200)}."
            yield flaw((name, *fault["loc"]), problem, f"Expected {expected}: {_DOCS}", "Correct it.")


def check_cache(definition: Definition) -> Iterator[Finding]:
    """Find times for which nothing can be kept."""
    yield from _faults(definition, "cache", CachePlan, "seconds for `calls` and `answers`")


def check_budget(definition: Definition) -> Iterator[Finding]:
    """Find limits that are none, and rungs of a ladder that no stage stands on, or two."""
    faults = list(_faults(definition, "budget", BudgetPlan, "limits and a `ladder`"))
    if faults:
        yield from faults
        return
    plan = BudgetPlan.model_validate(definition.file.content.get("budget") or {})
    met: dict[str, str] = {}
    for number, step in enumerate(plan.ladder):
        for stage in step.stages:
            place = ("budget", "ladder", number, "stages")
            if stage not in definition.components:
                known = ", ".join(definition.components)
                yield flaw(
                    place, f"There is no component `{shortened(stage)}`.", f"Expected one of {shortened(known, 300)}.",
                    "Correct the name.",
                )  # fmt: skip
            elif stage in met:
                problem = f"`{stage}` stands on two rungs, `{met[stage]}` and `{step.rung}`."
                yield flaw(place, problem, "Expected each stage once.", "Remove it from one of them.")
            met[stage] = step.rung
