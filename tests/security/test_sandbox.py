"""The sandbox in which Haystack renders templates shows nothing behind a value, opens no file and runs nothing."""

import sys

import pytest
from haystack.components.builders import ChatPromptBuilder, PromptBuilder
from haystack.components.converters import OutputAdapter
from haystack.components.routers import ConditionalRouter

from shiguan.answer.prompt_file_builder import PromptFileBuilder

TEMPLATES = [
    "{{ x.__class__ }}", "{{ x.__class__.__mro__[1].__subclasses__() }}", "{{ x|attr('__class__') }}", "{{ x|attr(name) }}",
    "{{ x|attr('_' ~ '_class_' ~ '_') }}", "{{ x._private }}", "{{ x['__cla' + 'ss__'] }}", "{{ x[['_','_class','_','_']|join] }}",
    "{{ self._TemplateReference__context }}", "{{ cycler.__init__.__globals__.os.popen('id').read() }}", "{{ lipsum.__globals__['os'] }}",
    "{{ range.__init__ }}", "{{ dict.__base__ }}", "{{ x.mro() }}", "{{ '{0.__class__}'.format(x) }}", "{{ '{0._private}'.format(x) }}",
    "{{ x|map('attr', '__class__')|list }}", "{% for a in x %}{{ a.__dict__ }}{% endfor %}", "{% set a = x.__class__ %}{{ a }}",
    "{% filter attr('__class__') %}x{% endfilter %}", "{% macro m() %}{{ x._private }}{% endmacro %}{{ m() }}", "{{ caller() }}",
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
@pytest.mark.parametrize("template", TEMPLATES)
def test_it_shows_nothing_and_opens_nothing(tmp_path, template, builder):
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
