"""Output of tuning while it works."""

import dataclasses
import io
import sys
import types

import pytest

import kiln
from kiln._progress import Display, bar

REQUESTS = ["tensor_set y=f32:4x16", "tensor_set y=f32:5"]
HALFWAY = kiln.TuneProgress(2, 4, "softmax_forward x=f32:4x16:nc", 8, 16, 24, 64, 12.4, 75.0, 1.25e-6, "", 0.0)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_with_the_look_of_tqdm():
    assert bar(HALFWAY) == "softmax_forward 2/4:  38%|█████████               | 24/64 [00:12<01:15, best 1.25 us]"
    start = dataclasses.replace(HALFWAY, all_candidates=0, all_planned=0, remaining_seconds=None, best_seconds=None)
    assert bar(start) == "softmax_forward 2/4:   0%|                        | 0/0 [00:12<?]"
    late = dataclasses.replace(HALFWAY, all_candidates=65, elapsed_seconds=3725.0)
    assert "100%|████████████████████████| 65/65 [1:02:05<01:15" in bar(late)


def test_a_terminal_has_one_line_that_is_cleared_at_the_end():
    file = Terminal()
    with Display(file) as display:
        display(HALFWAY)
    assert file.getvalue().startswith("\r\033[Ksoftmax_forward 2/4") and file.getvalue().endswith("\r\033[K")
    assert "\n" not in file.getvalue()


class Cell:
    """Stands for IPython in a notebook: keeps what its one output was."""

    kernel = object()

    def __init__(self):
        self.shown = []

    def get_ipython(self):
        return self

    def display(self, data, raw, display_id):
        assert raw and display_id and not self.shown
        self.update(data, raw)
        return self

    def update(self, data, raw):
        self.shown.append(data["text/plain"])


def test_a_notebook_has_one_output_that_is_cleared_at_the_end(monkeypatch):
    cell, file = Cell(), io.StringIO()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=cell.get_ipython, display=cell))
    late = dataclasses.replace(HALFWAY, all_candidates=60)
    with Display(file) as display:
        display(HALFWAY)
        display(late)
    assert cell.shown == [bar(HALFWAY), bar(late), ""] and file.getvalue() == ""
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None, display=cell))
    with Display(file) as display:  # IPython in a terminal that is no terminal
        display(HALFWAY)
    assert file.getvalue() == "layer 2/4: softmax_forward x=f32:4x16:nc\n"


def test_plain_lines_where_there_is_no_terminal():
    file = io.StringIO()
    with Display(file) as display:
        for elapsed in (0.0, 5.0, 12.0):
            display(dataclasses.replace(HALFWAY, elapsed_seconds=elapsed))
    assert file.getvalue().splitlines() == [
        "layer 2/4: softmax_forward x=f32:4x16:nc",
        "  candidate 8/16, 01:15 left, best 1.25 us",
    ]


def test_a_function_is_told_of_each_step():
    steps = []
    kiln.tune(REQUESTS, candidates=1, cache="off", driver="emulator", progress=steps.append)
    assert {step.layer for step in steps} == {1, 2} and steps[-1].layers == 2
    assert {step.request.split(":nc")[0].split(":c")[0] for step in steps} >= {"tensor_set y=f32:4x16"}
    assert steps[-1].all_candidates >= 1 and any(step.best_seconds for step in steps)


def test_plain_lines_by_default(capfd):
    kiln.tune(REQUESTS[0], candidates=1, cache="off", driver="emulator")
    assert "layer 1/1: tensor_set" in capfd.readouterr().err


def test_several_devices_tell_apart_and_give_a_result_for_each_kind(monkeypatch, tmp_path):
    monkeypatch.setenv("KILN_EMULATOR_DEVICE", "h200,t4,h200")
    steps = []
    cards = kiln.tune(
        REQUESTS, candidates=1, cache=tmp_path / "a.db", driver="emulator", device="all", progress=steps.append
    )
    assert [card.devices for card in cards] == [[0, 2], [1]]
    assert [[layer.status for layer in card.layers] for card in cards] == [["finished", "finished"]] * 2
    assert "H200, devices 0, 2, times modelled" in repr(cards[0]) and "T4, device 1, times" in repr(cards[1])
    assert {step.device for step in steps} >= {"1"} and steps[-1].all_candidates == 4
    again = kiln.tune(REQUESTS, candidates=1, cache=tmp_path / "a.db", driver="emulator", device=[1], progress=False)
    assert [len(card.layers) for card in again] == [2] and again[0].device == cards[1].device


def test_a_lost_device_is_a_warning_where_others_go_on(monkeypatch):
    def lose(command, variables, result, show):
        assert command[command.index("--device") + 1] == "0,1"
        result.write('{"cards": [{"device": "a", "devices": ["0"], "layers": []}], "lost": [{"device": "1"}]}')
        return 3, "kiln: driver error: device 1 was lost: gone"

    monkeypatch.setattr("kiln.tuning._run", lose)
    with pytest.warns(kiln.Warning, match="device 1 was lost"):
        assert len(kiln.tune(REQUESTS, device=(0, 1), progress=False)) == 1


def test_lines_of_several_devices_do_not_repeat_their_layers():
    file = io.StringIO()
    with Display(file) as display:
        for device in ("0", "1", "0", "1"):
            display(dataclasses.replace(HALFWAY, device=device, layer=int(device) + 1))
    request = "softmax_forward x=f32:4x16:nc"
    assert file.getvalue() == f"device 0: layer 1/4: {request}\ndevice 1: layer 2/4: {request}\n"
    assert bar(dataclasses.replace(HALFWAY, device="1")).startswith("device 1: softmax_forward 2/4: ")


def test_what_a_function_raises_ends_tuning():
    def stop(_):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        kiln.tune(REQUESTS, candidates=1, cache="off", driver="emulator", progress=stop)


def test_a_fault_of_the_program_has_its_class_and_hint():
    with pytest.raises(kiln.FileError, match="there is no file nofile.onnx") as raised:
        kiln.tune("nofile.onnx", driver="emulator")
    assert "requests file" in raised.value.hint
    with pytest.raises(kiln.InvalidArgument, match="there is no device 7") as raised:
        kiln.tune(REQUESTS, device=7, driver="emulator")
    assert "kiln devices" in raised.value.hint
