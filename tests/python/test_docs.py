"""The snippets of the pages run, one after the other; those that take PyTorch in pytorch/test_page.py."""

import pathlib
import re

import numpy as np
import onnx_files as files

import kiln

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs/python.md"


def test_the_snippets_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    snippets = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, str(PAGE), "exec"), names)
    assert names["p"].shape == (1, 2048)
    assert isinstance(names["result"], kiln.TuneResult)


def test_the_snippets_on_layers_run():
    page = ROOT / "docs/request-syntax.md"
    snippets = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    snippets = [snippet for snippet in snippets if "import torch" not in snippet]
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, str(page), "exec"), {})


def test_the_snippets_on_whole_models_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    softmax = files.model(
        [files.node("Softmax", ["x"], ["y"])],
        [files.value("x", "float", ["n", 3, 4, 4])],
        [files.value("y", "float", ["n", 3, 4, 4])],
    )
    (tmp_path / "model.onnx").write_bytes(softmax)
    names = {"x": np.zeros((8, 3, 4, 4), np.float32)}
    snippets = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/models.md").read_text(), re.MULTILINE | re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, "docs/models.md", "exec"), names)
    assert np.allclose(names["y"], 0.25)
    assert isinstance(names["result"], kiln.TuneResult)


def test_the_lines_of_the_first_page_run_and_print_its_table(capsys):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    snippets = [text for language, text in blocks if language == "python"]
    table = next(text for language, text in blocks if not language).splitlines()
    names = {}
    exec(compile(snippets[0], "README.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == table[:3] and len(printed) == len(table), "the device, its clock and the headings"
    row = re.compile(r"(.*\S +1) +[\d.]+ us +\d+% +[\d.]+x  \w+")  # what times and compilers change is not compared
    assert [row.fullmatch(line)[1] for line in printed[3:-1]] == [row.fullmatch(line)[1] for line in table[3:-1]]
    assert printed[-1].startswith("all layers: ") and table[-1].startswith("all layers: ")
    exec(compile(snippets[1], "README.md", "exec"), names)
    assert names["y"].shape == (1, 8, 32, 32)


def test_the_page_names_every_class_of_error():
    page = PAGE.read_text()
    for kind in kiln.Error.__subclasses__():
        assert f"`{kind.__name__}`" in page
