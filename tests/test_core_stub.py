"""The stub of the compiled core says what is in the module: names, arguments, properties."""

import ast
from pathlib import Path

import pytest

import hardmargin
from hardmargin import _core

STUB = ast.parse(Path(hardmargin.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))


def is_public(name):
    return not name.startswith("_")


def functions(nodes):
    return {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}


def arguments(function):
    """Positional and keyword-only arguments of a definition, without self."""
    positional = [a.arg for a in function.args.args if a.arg != "self"]
    return positional, [a.arg for a in function.args.kwonlyargs]


CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
RESULTS_AND_ERRORS = sorted(filter(is_public, CLASSES))

# A function stands there by itself, or as a name whose type is a protocol that is called like it.
FUNCTIONS = functions(STUB.body) | {
    node.target.id: functions(CLASSES[node.annotation.id].body)["__call__"]
    for node in STUB.body
    if isinstance(node, ast.AnnAssign)
    and isinstance(node.annotation, ast.Name)
    and node.annotation.id in CLASSES
}


def test_it_has_the_names_of_the_module():
    public = {name for name in vars(_core) if is_public(name)}
    assert {*FUNCTIONS, *RESULTS_AND_ERRORS} == public


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_have_the_same_arguments(name):
    [(signature, *_)] = getattr(_core, name).__nb_signature__
    [actual] = functions(ast.parse(f"{signature}: ...").body).values()
    assert arguments(FUNCTIONS[name]) == arguments(actual)


@pytest.mark.parametrize("name", RESULTS_AND_ERRORS)
def test_classes_have_the_same_properties(name):
    actual = {attribute for attribute in vars(getattr(_core, name)) if is_public(attribute)}
    assert functions(CLASSES[name].body).keys() == actual


@pytest.mark.parametrize("name", RESULTS_AND_ERRORS)
def test_classes_have_the_same_base(name):
    bases = [ast.unparse(base) for base in CLASSES[name].bases] or ["object"]
    assert [base.__name__ for base in getattr(_core, name).__bases__] == bases
