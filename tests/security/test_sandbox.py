"""What the check of templates leaves to Haystack's sandbox shows nothing behind a value and opens no file."""

import sys

import pytest
from haystack.components.builders import ChatPromptBuilder, PromptBuilder
from haystack.components.converters import OutputAdapter
from haystack.components.routers import ConditionalRouter

from shiguan.answer.prompt_file_builder import PromptFileBuilder
from shiguan.checking.templates import parse_template, violations

LEFT = [
    "{{ ''['__class__'] }}", "{{ x['__class__'] }}", "{{ x[name] }}", "{{ x['_' ~ 'private'] }}", "{{ x['_private'] }}",
    "{{ self }}", "{{ '%s' % x }}", "{{ x|map(attribute='__class__')|list }}", "{{ [x]|map(attribute='_private')|list }}",
    "{{ [x]|selectattr('_private')|list|length }}", "{{ [x]|rejectattr('a._b')|list|length }}", "{{ [x]|groupby('_private') }}",
    "{{ [x]|sort(attribute='__class__')|length }}", "{{ [x]|sum(attribute=name) }}", "{{ [x, x]|unique(attribute='_private')|list }}",
    "{{ [x]|join(attribute='_private') }}", "{% include secret %}", "{% include 'layers/../../secret' %}", "{% import secret as y %}{{ y }}",
    "{% from secret import y %}", "{% extends secret %}", "{% block a %}x{% endblock %}", "{{ varargs }}", "{{ 99999999999 }}",
    "{% for i in range(99999999) %}x{% endfor %}",
]  # fmt: skip
opened: list[str] = []
secret: list[str] = []


class Guarded:
    _private = "sk-secret"

    def __repr__(self):
        return "shown"


@pytest.fixture(scope="module", autouse=True)
def _watching():
    sys.addaudithook(lambda event, arguments: event == "open" and str(arguments[0]) in secret and opened.append("!"))


def builders(template):
    text = {"output_type": str}
    route = {"condition": "{{ true }}", "output": template, "output_name": "text", "output_type": str}
    message = "{% message role='user' %}" + template + "{% endmessage %}"
    return {
        "PromptBuilder": lambda **values: PromptBuilder(template).run(**values),
        "ChatPromptBuilder": lambda **values: ChatPromptBuilder(message).run(**values),
        "OutputAdapter": lambda **values: OutputAdapter(template, **text).run(**values),
        "ConditionalRouter": lambda **values: ConditionalRouter([route]).run(**values),
        "PromptFileBuilder": lambda **values: PromptFileBuilder(template=template).run(**values),
    }


@pytest.mark.parametrize("builder", builders(""))
@pytest.mark.parametrize("template", LEFT)
def test_it_shows_nothing_and_opens_nothing(tmp_path, template, builder):
    assert list(violations(parse_template(template))) == []
    path = tmp_path / "secret.jinja"
    path.write_text("sk-secret", encoding="utf-8")
    secret[:], opened[:] = [str(path)], []
    try:
        result = str(builders(template)[builder](x=Guarded(), name="__class__", secret=str(path)))
        assert "Guarded" not in result
    except Exception as error:  # whatever the sandbox raises, which may name the kind of a value
        assert not isinstance(error, AssertionError)
        result = str(error)
    finally:
        secret.clear()
    assert "sk-secret" not in result
    assert opened == []
