"""kiln.torch.record(): the requests of a run, and what `kiln tune` makes of them."""

import pytest
from networks import network

import kiln

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")
from torch import nn  # noqa: E402

import kiln.torch  # noqa: E402


def run(net, x):
    net.zero_grad()
    net(x).square().mean().backward()


def test_a_run_on_pytorch_has_the_requests_that_kiln_has():
    net, x = network("residual")
    with kiln.torch.record() as of_pytorch:
        run(net, x)
    kiln.torch.optimize(net, strict=True)
    with kiln.torch.record() as of_kiln:
        run(net, x)
    assert sorted(of_pytorch) == sorted(of_kiln)
    assert of_pytorch.counts == of_kiln.counts
    assert any(line.startswith("conv_backward_filter") for line in of_pytorch)
    assert max(of_pytorch.counts.values()) > 1


def test_recording_changes_nothing_of_a_run():
    def losses(recorded):
        torch.manual_seed(3)
        net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.MaxPool2d(2))
        x = torch.randn(2, 2, 6, 6)
        if recorded:
            with kiln.torch.record() as requests:
                run(net, x)
            assert {line.split()[0] for line in requests} >= {"dropout", "norm_backward", "pool_backward"}
        else:
            run(net, x)
        return [each.grad for each in net.parameters()] + list(net.state_dict().values()) + [torch.rand(3)]

    for mine, expected in zip(losses(True), losses(False)):
        assert torch.equal(mine, expected)


def test_what_kiln_does_not_serve_is_left_out():
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).double()
    with kiln.torch.record() as requests:
        net(torch.zeros(2, 3).double())
    assert len(requests) == 0 and requests.text() == ""


def test_calls_of_kiln_are_recorded_with_the_classes_of_their_scales():
    x = torch.ones(2, 3)
    with kiln.torch.record() as requests:
        kiln.tensor_transform(x, alpha=0.5, beta=1.0, out=x.clone())
    kiln.tensor_transform(x, alpha=0.5)  # the record has ended
    assert list(requests) == ["tensor_transform x=f32:2x3:nc y=f32:2x3:nc alpha=any beta=1"]


def test_runs_on_pytorch_note_where_tensors_begin():
    x = torch.zeros(17)[1:].view(2, 8)
    with kiln.torch.record() as of_pytorch:
        torch.relu(x)
    with kiln.torch.record() as of_kiln:
        kiln.torch.functional.relu(x)
    assert list(of_pytorch) == list(of_kiln)


def test_recorded_requests_can_be_tuned(tmp_path):
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.SiLU()).eval()
    x = torch.randn(1, 1, 6, 6)
    kiln.torch.optimize(net, strict=True, fold=True)
    with torch.no_grad(), kiln.torch.record() as requests:
        net(x)
        net(x)
    (line,) = requests
    assert requests[0] == line and requests.counts[line] == 2 and "epilogue=user:" in line
    assert requests.text().endswith(f"{line} *2\n")
    path = tmp_path / "requests.txt"
    requests.save(path)
    result = kiln.tune(path, candidates=1, cache=tmp_path / "tuned.db", driver="emulator", progress=False)
    assert [(layer.request, layer.status) for layer in result.layers] == [(line, "finished")]
    with pytest.raises(kiln.FileError, match="cannot write"):
        requests.save(tmp_path / "no" / "requests.txt")
