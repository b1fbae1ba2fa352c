"""The prompts that ship with Shiguan, their layers, profiles, examples and not-found sentences, and their rendering."""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from haystack.components.builders import ChatPromptBuilder
from haystack.dataclasses import ChatMessage
from jinja2 import Environment, FunctionLoader, StrictUndefined, meta, nodes
from jinja2.exceptions import SecurityError, TemplateError, TemplateRuntimeError
from pydantic import BaseModel, TypeAdapter, ValidationError

from shiguan.errors import ConfigurationError
from shiguan.haystack_compat import template_environment, with_meta
from shiguan.llm.source_blocks import neutral_text
from shiguan.llm.template_rules import WHAT_TEMPLATES_DO, faults_of_template
from shiguan.resources import read_texts, resource_folder, text_hash


def _check_known(name: str, known: Sequence[str], what: str) -> None:
    if name not in known:
        raise ConfigurationError(f"There is no {what}. Known: {', '.join(known)}. Name one of these.")


_OWN = "SHIGUAN_PROMPTS_DIR"


def own_prompts() -> Path | None:
    """Return the folder whose files replace shipped ones of the same name, if one is set."""
    given = os.environ.get(_OWN)
    if given and not Path(given).is_dir():
        raise ConfigurationError(
            f"`--prompts` or ${_OWN} names {given}, which is not a folder. Make it, or name another one or none."
        )
    return Path(given) if given else None


def read_prompt_file(name: str, *, shipped: bool = False) -> str:
    own = None if shipped else own_prompts()
    path = own / name if own is not None and (own / name).is_file() else resource_folder("prompts") / name
    return path.read_text(encoding="utf-8-sig")


def list_prompts() -> list[str]:
    """List the prompts that ship with Shiguan, sorted, without the `.jinja` suffix."""
    return sorted(path.stem for path in resource_folder("prompts").glob("*.jinja"))


def load_prompt(name: str, *, shipped: bool = False) -> str:
    """Read a prompt: the user's own, if there is one, unless `shipped`."""
    _check_known(name, list_prompts(), f"prompt `{name}`")
    return read_prompt_file(f"{name}.jinja", shipped=shipped)


def list_layers(kind: str | None = None) -> list[str]:
    """List the layers of a kind (`shiguan` of `persona`), or all by their paths (`persona/shiguan`), sorted."""
    layers = _layers_in(resource_folder("prompts") / "layers")
    return [name.removeprefix(f"{kind}/") for name in layers if kind is None or name.startswith(f"{kind}/")]


@cache  # what ships does not change under a running process, and every prompt asks for it a dozen times
def _layers_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.jinja"))


def load_layer(name: str, *, shipped: bool = False) -> str:
    return read_prompt_file(f"{_PREFIX}{name}{_SUFFIX}", shipped=shipped)


@cache  # every prompt builder parses the same thirty texts
def _variables(text: str) -> frozenset[str]:
    return frozenset(meta.find_undeclared_variables(Environment(autoescape=True).parse(text)))


def check_layer(kind: str, name: str) -> None:
    _check_known(name, list_layers(kind), f"{kind} `{name}`")


def load_prompt_data(folder: str, name: str) -> str:
    """Read the YAML that prompts are filled with from `profiles` or `examples`; an error lists the known files."""
    path = resource_folder("prompts") / folder
    _check_known(name, sorted(file.stem for file in path.glob("*.yml")), f"`{name}` in prompts/{folder}")
    return read_prompt_file(f"{folder}/{name}.yml")


def not_found_sentence(mode: str, language: str) -> str:
    """Return the sentence with which a mode says that the sources do not hold the answer."""
    modes: dict[str, dict[str, str]] = read_texts("not_found")
    _check_known(mode, list(modes), f"not-found sentence for mode `{mode}`")
    return modes[mode].get(language, modes[mode]["en"])


def modes_with_sentence() -> tuple[str, ...]:
    return tuple(read_texts("not_found"))


KINDS = ("persona", "rules", "task", "scope", "working")
"""The kinds of layers that a template includes by a variable, such as `{% include persona %}`."""

_PREFIX, _SUFFIX = "layers/", ".jinja"


@dataclass(frozen=True)
class LayerUse:
    """The layers that a template includes, and the variables that they need."""

    fixed: tuple[str, ...]
    kinds: tuple[str, ...]
    variables: frozenset[str]


def layer_path(kind: str, name: str) -> str:
    """Return the path by which a template includes a layer, such as `layers/persona/shiguan.jinja`."""
    return f"{_PREFIX}{kind}/{name}{_SUFFIX}"


def layer_source(path: str) -> str | None:
    """Load the layer that an `include` names, for Jinja; None if there is no such layer."""
    name = path.removeprefix(_PREFIX).removesuffix(_SUFFIX)
    return load_layer(name) if path == f"{_PREFIX}{name}{_SUFFIX}" and name in list_layers() else None


def layers_used(environment: Environment, source: str, name: str) -> LayerUse:
    """Find the layers that a template includes; including anything else is a `ConfigurationError`."""
    fixed: list[str] = []
    kinds: set[str] = set()
    for node in environment.parse(source).find_all(nodes.Include):
        if isinstance(node.template, nodes.Name) and node.template.name in KINDS:
            kinds.add(node.template.name)
        elif isinstance(node.template, nodes.Const) and layer_source(str(node.template.value)) is not None:
            fixed.append(str(node.template.value).removeprefix(_PREFIX).removesuffix(_SUFFIX))
        else:
            raise ConfigurationError(
                f"Prompt `{name}` includes something that is not a layer. Include one of {', '.join(KINDS)}, or a file "
                "below `layers/` by its name."
            )
    chosen = tuple(kind for kind in KINDS if kind in kinds)
    eligible = [*fixed, *(f"{kind}/{layer}" for kind in chosen for layer in list_layers(kind))]
    # An own layer gets the variables of the shipped one.
    variables: set[str] = set()
    for layer in eligible:
        variables |= _variables(load_layer(layer, shipped=True))
    return LayerUse(tuple(dict.fromkeys(fixed)), chosen, frozenset(variables))


class _Profile(BaseModel, extra="forbid"):
    persona: Any = None
    rules: dict[str, list[str]] | None = None
    sections: dict[str, list[str]] | None = None


class _Example(BaseModel, extra="forbid"):
    sources: list[str]
    question: str
    answer: str


def read_profile(given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Read a profile by its file's stem or as given: `persona`, a name or None; `rules` and `sections` by language."""
    wanted = "It takes `persona`, `rules`, `sections`; the last two are lists of texts for each language"
    found: _Profile = _read(TypeAdapter(_Profile), "profiles", given, f"{wanted}, such as `rules: {{en: [...]}}`")
    return {"persona": found.persona, "rules": found.rules or {}, "sections": found.sections or {}}


def read_examples(given: str | Mapping[str, Any] | None) -> dict[str, list[dict[str, Any]]]:
    """Read examples by their file's stem or as given: by language, lists of `sources`, `question` and `answer`."""
    wanted = "Each language takes a list of entries with `sources` (a list of texts), `question` and `answer`"
    found = _read(TypeAdapter(dict[str, list[_Example]]), "examples", given, wanted)
    return {language: [example.model_dump() for example in examples] for language, examples in found.items()}


def in_language(by_language: Mapping[str, Any], language: str) -> list[Any]:
    """Choose the entries of a language, else of English, else none."""
    return list(by_language.get(language) or by_language.get("en") or [])


def _read(form: TypeAdapter[Any], folder: str, given: str | Mapping[str, Any] | None, wanted: str) -> Any:
    try:
        data = yaml.safe_load(load_prompt_data(folder, given)) if isinstance(given, str) else given
        return form.validate_python(data or {})
    except ValidationError as error:
        fault = error.errors()[0]
        name, place = f"`{given}`" if isinstance(given, str) else "what is given", ".".join(map(str, fault["loc"]))
        raise ConfigurationError(
            f"Of the {folder}, {name} is not valid: {fault['msg']} (`{place}`). {wanted}. Correct it."
        ) from error


_MESSAGE_TAG = re.compile(r"\{%[-+]?\s*message\b")


def chat_prompt_builder(source: str, name: str) -> ChatPromptBuilder:
    """Make Haystack's prompt builder strict; a template without a `message` block is one user message."""
    if _MESSAGE_TAG.search(source) is None:
        source = '{% message role="user" %}\n' + source + "\n{% endmessage %}"
    if faults := faults_of_template(source):
        raise ConfigurationError(f"Prompt `{name}` {faults[0]}. {WHAT_TEMPLATES_DO} Remove it.")
    try:
        builder = ChatPromptBuilder(template=source, required_variables="*")
    except TemplateError as error:
        raise ConfigurationError(f"Prompt `{name}` is not a valid template: {error}. Correct it.") from error
    environment = template_environment(builder)
    # Haystack renders a missing attribute as nothing; an incomplete prompt must not be sent.
    environment.undefined = StrictUndefined
    # Lines with only a tag leave no empty lines, so that a prompt reads like its file.
    environment.trim_blocks = True
    environment.lstrip_blocks = True
    # `include` reaches layers and no other file.
    environment.loader = FunctionLoader(layer_source)
    limit_rendering(environment)
    # Haystack compiles the template anew for every prompt, which takes longer than the search.
    environment.from_string = cache(environment.from_string)
    return builder


# A prompt with every source has a hundredth of this.
_MOST_CHARACTERS, _MOST_SECONDS = 4_000_000, 5.0


def limit_rendering(environment: Environment) -> None:
    """End a rendering that takes too long or writes too much with a `TemplateRuntimeError`."""

    def concat(parts: Iterable[str]) -> str:
        end, size, kept = time.thread_time() + _MOST_SECONDS, 0, []
        for part in parts:
            size += len(part)
            kept.append(part)
            if size > _MOST_CHARACTERS or time.thread_time() > end:
                raise TemplateRuntimeError(
                    f"it takes more than {_MOST_CHARACTERS:,} characters or {_MOST_SECONDS:g} seconds of the processor"
                )
        return "".join(kept)

    environment.concat = concat  # type: ignore[method-assign]


def prompt_hash(source: str) -> str:
    """Return the version of a prompt, twelve hexadecimal digits."""
    return text_hash(source)[:12]


def messages_sha256(messages: Sequence[ChatMessage]) -> str:
    return text_hash(json.dumps([[message.role.value, message.text] for message in messages]))


def render_prompt(name: str, **variables: Any) -> list[ChatMessage]:
    """Render a prompt of `prompts/`; text from outside must have gone through `neutral_text`."""
    builder, digest, needed = _prepared(name, own_prompts())
    if needed != set(variables):
        wrong = ", ".join(f"`{variable}`" for variable in sorted(needed ^ set(variables)))
        raise ConfigurationError(
            f"Prompt `{name}` takes the variables {', '.join(sorted(needed))}; missing or unknown: {wrong}."
        )
    marks = {"prompt": name, "prompt_hash": digest}
    return [with_meta(message, **marks) for message in rendered(builder, name, variables)]


def rendered(builder: ChatPromptBuilder, name: str, variables: dict[str, Any]) -> list[ChatMessage]:
    """Render messages with a strict builder."""
    try:
        messages: list[ChatMessage] = builder.run(template_variables=variables)["prompt"]
    except (TemplateError, SecurityError) as error:
        raise ConfigurationError(
            f"Prompt `{name}` could not be rendered: {error}. Correct the template or its variables."
        ) from error
    if not messages:
        raise ConfigurationError(
            f'Prompt `{name}` renders no message. Wrap its text in {{% message role="user" %}} and {{% endmessage %}}.'
        )
    return messages


@cache
def _prepared(name: str, own: Path | None) -> tuple[ChatPromptBuilder, str, frozenset[str]]:  # noqa: ARG001  # another folder has another text
    """Read a prompt, its version, and the variables of the shipped prompt, which it is filled with."""
    source = load_prompt(name)
    return chat_prompt_builder(source, name), prompt_hash(source), _variables_of(name, load_prompt(name, shipped=True))


def _variables_of(name: str, source: str) -> frozenset[str]:
    builder = chat_prompt_builder(source, name)
    return layers_used(template_environment(builder), source, name).variables | set(builder.variables)


def check_own_prompts() -> None:
    """Check every file of the user's own folder: its name, its variables, and that question and sources are shown."""
    own, shipped = own_prompts(), resource_folder("prompts")
    for path in sorted(own.rglob("*")) if own is not None else ():
        if path.suffix not in (".jinja", ".yml"):
            continue
        kind, _, name = path.relative_to(own or path).as_posix().rpartition("/")
        if not (shipped / kind / name).is_file() or not (path.suffix == ".jinja" or kind in ("profiles", "examples")):
            raise ConfigurationError(
                f"{path} does not replace any file. Name it as a shipped prompt, {', '.join(list_prompts())}, with "
                "`.jinja`, or as a file below `layers/`, `profiles/` or `examples/`."
            )
        if path.suffix == ".yml":
            (read_profile if kind == "profiles" else read_examples)(path.stem)
            continue
        file = f"{kind}/{name}".removeprefix("/")
        known = _variables_of(file, read_prompt_file(file, shipped=True))
        used = _variables_of(file, read_prompt_file(file))
        if unknown := used - known:
            raise ConfigurationError(
                f"{path} has the variables {', '.join(sorted(unknown))}, which nothing fills. Known are "
                f"{', '.join(sorted(known))}."
            )
        if not kind and (missing := {"context", "query"} & known - used):
            shown = ", ".join(f"`{variable}`" for variable in sorted(missing))
            raise ConfigurationError(f"{path} does not show {shown}. Add it.")


def written_pairs(pairs: Sequence[tuple[str, str]], *, numbered: bool = False) -> str:
    """Write questions with their answers for a prompt; numbered if they do not build on each other."""
    places = [f" {place}" if numbered else "" for place in range(1, len(pairs) + 1)]
    return "\n---\n".join(
        f"Question{place}: {question}\nAnswer{place}: {answer}"
        for place, (question, answer) in zip(places, pairs, strict=True)
    )


LAST_TURNS = 6
"""The number of last messages with which a follow-up is read."""

_SPEAKERS = ("user", "assistant")
_LONGEST_TURN = 2_000
_LONGEST_ROLE = 20


def clean_history(
    history: Iterable[ChatMessage | Mapping[str, Any]] | None, *, max_turns: int = 20
) -> tuple[list[ChatMessage], list[str]]:
    """Keep the last messages of user and assistant, made harmless and short, and warn of what was dropped."""
    kept: list[ChatMessage] = []
    dropped: Counter[str] = Counter()
    for turn in history or []:
        role, text = _role_and_text(turn)
        text = neutral_text(text).strip()
        if role not in _SPEAKERS:
            dropped[f"with the role `{role}`" if role else "that are no messages"] += 1
        elif not text:
            dropped["without text"] += 1
        else:
            text = _shortened(text)
            kept.append(ChatMessage.from_user(text) if role == "user" else ChatMessage.from_assistant(text))
    warnings = [
        f"{count} {'message' if count == 1 else 'messages'} {what} left out of the history; only turns of `user` and "
        "`assistant` count."
        for what, count in dropped.items()
    ]
    return kept[max(0, len(kept) - max_turns) :], warnings


def _role_and_text(turn: Any) -> tuple[str, str]:
    if isinstance(turn, ChatMessage):
        return turn.role.value, " ".join(turn.texts)
    if not isinstance(turn, Mapping):
        return "", ""
    role = turn.get("role")
    name = "".join(c for c in str(getattr(role, "value", role) or "") if c.isalnum() or c in "_-")[:_LONGEST_ROLE]
    return name, _text(turn.get("content"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return " ".join(part for part in parts if isinstance(part, str))
    return ""


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_TURN:
        return text
    # A long turn names its topic at the beginning and its point at the end.
    head = _LONGEST_TURN * 2 // 3
    return f"{text[:head]} … {text[head - _LONGEST_TURN :]}"
