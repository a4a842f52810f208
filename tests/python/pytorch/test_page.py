"""The snippets of docs/pytorch.md run, one after the other, and those of docs/request-syntax.md that take PyTorch."""

import pathlib
import re

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import kiln.torch.functional as K  # noqa: E402

DOCS = pathlib.Path(__file__).parents[3] / "docs"
PAGE = DOCS / "pytorch.md"


def test_the_snippets_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)
    names = {}
    snippets = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, str(PAGE), "exec"), names)
    assert names["w"].grad is not None


def test_the_snippets_on_layers_run():
    page = DOCS / "request-syntax.md"
    snippets = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    snippets = [snippet for snippet in snippets if "import torch" in snippet]
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, str(page), "exec"), {})


def test_the_page_names_every_function():
    page = PAGE.read_text()
    for name in K.__all__:
        assert f"`{re.sub('[123]d$', '', name)}" in page, name
