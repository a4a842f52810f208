"""CTC loss of PyTorch: as a call of Kiln, and as function and module of kiln.torch."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import kiln  # noqa: E402
import kiln.torch as kt  # noqa: E402
import kiln.torch.functional as K  # noqa: E402

REDUCTIONS = ("none", "mean", "sum")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def scores(*extents):
    return torch.randn(*extents).log_softmax(-1)


def in_rows(labels, behind=-1):
    """Labels of each image, as rows of one length; what stands behind them does not count."""
    most = max(map(len, labels))
    rows = [[*each, *[behind] * (most - len(each))] for each in labels]
    return torch.tensor(rows, dtype=torch.int64).view(len(labels), most)


def lengths(labels):
    return torch.tensor([len(each) for each in labels])


def same(x, *given, reduction="none", **words):
    """The loss and the gradient are those of PyTorch in f64, which computes from labels of 64 bits."""
    mine, theirs = x.detach().requires_grad_(), x.double().requires_grad_()
    loss, expected = (L.ctc_loss(of, *given, reduction=reduction, **words) for L, of in ((K, mine), (F, theirs)))
    dloss = torch.rand_like(expected) + 0.5
    loss.backward(dloss.float())
    expected.backward(dloss)
    for actual, other in ((loss, expected), (mine.grad, theirs.grad)):
        torch.testing.assert_close(actual.detach(), other.detach().float(), rtol=1e-5, atol=1e-5, equal_nan=True)


# Classes, the blank, steps, labels of each image, and steps of each image if they are not all.
LABELS = {
    "usual": (6, 0, 9, [[1, 2, 3, 5], [4, 3], [2, 4, 1]], (9, 7, 8)),
    "one step": (4, 0, 1, [[1], [], [3]], None),
    "no labels": (4, 0, 5, [[], []], (5, 3)),
    "as many labels as steps": (4, 0, 3, [[1, 2, 3], [3, 1, 3]], None),
    "repeated labels": (4, 0, 8, [[1, 1, 2, 2], [3, 3, 3], [2, 1, 1, 2]], (8, 5, 8)),
    "the blank in the middle": (5, 2, 7, [[0, 1, 3], [4, 4]], (7, 5)),
    "the blank is the last class": (5, 4, 7, [[0, 1, 3], [2, 2]], None),
    "two classes": (2, 1, 6, [[0], [0, 0, 0]], None),
    "many labels": (9, 3, 160, [[(5 * i) % 3 + 4 * (i % 2) for i in range(70)], [0] * 11], (160, 33)),
}


@pytest.mark.parametrize("name", LABELS)
def test_losses_and_gradients_are_pytorch_s(name):
    classes, blank, steps, labels, inputs = LABELS[name]
    inputs = torch.tensor(inputs or [steps] * len(labels))
    x, counts = scores(steps, len(labels), classes), lengths(labels)
    for reduction in REDUCTIONS:
        same(x, in_rows(labels), inputs, counts, blank=blank, reduction=reduction)
    same(x, torch.tensor([each for of in labels for each in of], dtype=torch.int32), inputs, counts, blank=blank)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_infinite_losses(reduction, zero_infinity):
    x, targets = scores(6, 4, 4), in_rows([[1, 2, 3], [1, 1, 1], [2, 2, 3], [3]], behind=0)
    given = targets, torch.tensor([2, 4, 6, 6]), torch.tensor([3, 3, 3, 1])
    same(x, *given, reduction=reduction, zero_infinity=zero_infinity)
    words = {"reduction": reduction, "zero_infinity": zero_infinity}
    alone = K.ctc_loss(x[:, :1], given[0][:1], given[1][:1], given[2][:1], **words)
    assert torch.equal(alone, torch.zeros_like(alone) if zero_infinity else torch.full_like(alone, float("inf")))


def test_classes_of_no_probability_have_a_gradient_of_0():
    x = torch.randn(6, 2, 5)
    x[1:, :, 4] = -torch.inf
    of = [x.log_softmax(-1).to(dtype).requires_grad_() for dtype in (torch.float32, torch.float64)]
    losses = [L.ctc_loss(each, torch.tensor([[1, 2], [3, 1]]), (6, 5), (2, 2)) for L, each in zip((K, F), of)]
    torch.testing.assert_close(losses[0], losses[1].float(), rtol=1e-5, atol=1e-5)
    mine, theirs = (torch.autograd.grad(*each)[0] for each in zip(losses, of))
    assert (mine[1:, :, 4] == 0).all() and theirs[1:5, :, 4].isnan().all()
    torch.testing.assert_close(mine, theirs.nan_to_num().float(), rtol=1e-5, atol=1e-5)


def test_images_without_steps():
    x = scores(4, 3, 5).requires_grad_()
    loss = K.ctc_loss(x, in_rows([[1, 2], [], [3]]), [0, 0, 4], [2, 0, 1], reduction="none")
    assert loss[:2].tolist() == [float("inf"), 0] and loss[2].isfinite()
    loss.sum().backward()
    assert (x.grad[:, :2] == 0).all() and (x.grad[:, 2] != 0).all()


@pytest.mark.parametrize(
    "arranged",
    [
        lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
        lambda x: x.permute(2, 1, 0).contiguous().permute(2, 1, 0),
        lambda x: torch.cat([x, x + 1], 2)[..., :5],
        lambda x: x.repeat_interleave(2, 0)[::2],
        lambda x: x[:1].expand(7, 3, 5),
    ],
    ids=["images first", "classes first", "of more classes", "every second step", "a step again and again"],
)
def test_scores_anywhere_in_memory(arranged):
    labels = [[1, 2, 1], [4], [3, 3]]
    targets = in_rows(labels, behind=0).t().contiguous().t()
    same(arranged(scores(7, 3, 5)), targets, torch.tensor([14, 7, 5, 6])[1:], lengths(labels).repeat_interleave(2)[::2])


@pytest.mark.parametrize("of", [torch.int64, torch.int32, torch.uint8, list, tuple], ids=str)
def test_types_of_labels_and_lengths(of):
    labels, counts, inputs = [[1, 2], [4, 4]], [2, 2], [5, 4]
    is_tensor = isinstance(of, torch.dtype)
    given = [torch.tensor(each, dtype=of) if is_tensor else of(each) for each in (inputs, counts)]
    targets = torch.tensor(labels, dtype=of if is_tensor else torch.int64)
    same(scores(5, 2, 6), targets, *given)
    same(scores(5, 2, 6), targets.flatten(), *given)
    same(scores(5, 2, 6), targets.double(), *given)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_one_image(reduction):
    x, targets = scores(6, 5), torch.tensor([1, 3, 3])
    for given in ((torch.tensor([5]), torch.tensor([3])), (torch.tensor(5), torch.tensor(3)), ((5,), (3,))):
        same(x, targets, *given, reduction=reduction)
    same(x, targets.unsqueeze(0), (5,), (2,), reduction=reduction)


def test_runs_repeat_bit_for_bit():
    x, targets = scores(40, 3, 7).requires_grad_(), torch.randint(1, 7, (3, 15))
    given = targets, (40, 31, 40), (15, 9, 12)

    def run():
        x.grad = None
        loss = K.ctc_loss(x, *given, reduction="none")
        loss.sum().backward()
        return loss.detach(), x.grad

    first = run()
    assert all(torch.equal(mine, other) for mine, other in zip(first, run()))
    with torch.no_grad():  # which keeps nothing for a gradient
        assert torch.equal(K.ctc_loss(x, *given, reduction="none"), first[0])


class Reader(nn.Module):
    """Scores of steps, and their loss."""

    def __init__(self, **words):
        super().__init__()
        self.linear, self.loss = nn.Linear(4, 6), nn.CTCLoss(**words)

    def forward(self, x, *given):
        return self.loss(F.log_softmax(self.linear(x), -1), *given)


@pytest.mark.parametrize("words", [{}, {"blank": 5, "reduction": "sum", "zero_infinity": True}], ids=str)
def test_a_step_of_training(words):
    net = Reader(**words)
    mine, x = kt.optimize(copy.deepcopy(net), strict=True), torch.randn(8, 3, 4)
    labels = [[1, 2, 2], [3], [4, 4, 4, 1]]
    for given in (
        (in_rows(labels, behind=0), torch.tensor([8, 6, 8]), lengths(labels)),
        (torch.tensor([each for of in labels for each in of]), (8, 6, 8), tuple(map(len, labels))),
    ):
        losses = []
        for each in (net, mine):
            each.zero_grad()
            losses.append(each(x, *given))
            losses[-1].backward()
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=1e-5)
        for a, b in zip(mine.parameters(), net.parameters()):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)
    assert str(kt.report(mine)).startswith("3 of 3 places on Kiln")
    with kt.enabled(strict=True):
        torch.testing.assert_close(net(x, *given), losses[0])


def test_autocast_computes_in_f32():
    given, x = (in_rows([[1, 2], [3]]), torch.tensor([5, 5]), torch.tensor([2, 1])), torch.randn(5, 2, 4)
    net = Reader()
    mine, results = kt.optimize(copy.deepcopy(net), strict=True), []
    for each in (net, mine):
        with torch.autocast("cpu", torch.bfloat16):
            loss = each(x, *given)
        loss.backward()
        results.append((loss.detach(), each.linear.weight.grad))
    torch.testing.assert_close(results[1], results[0], rtol=0.03, atol=0.03)  # which holds types too
    with torch.autocast("cpu", torch.bfloat16):
        loss = K.ctc_loss(scores(5, 2, 4).bfloat16(), *given, reduction="none")
    assert loss.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    labels = [[1, 2, 2], [3]]
    x = scores(7, 2, 5).to(dtype)
    mine, exact = x.clone().requires_grad_(), x.float().requires_grad_()
    for each in (mine, exact):
        K.ctc_loss(each, in_rows(labels), (7, 5), (3, 1), reduction="sum").backward()
    assert K.ctc_loss(x, in_rows(labels), (7, 5), (3, 1)).dtype == dtype
    assert mine.grad.dtype == dtype
    torch.testing.assert_close(mine.grad.float(), exact.grad, rtol=0.02, atol=0.02)


def test_gradients_of_gradients_are_pytorch_s_error():
    given = in_rows([[1, 2], [3]]), (5, 5), (2, 1)
    for L in (F, K):
        x = scores(5, 2, 4).requires_grad_()
        (dx,) = torch.autograd.grad(L.ctc_loss(x, *given), x, create_graph=True)
        with pytest.raises(RuntimeError, match="_ctc_loss_backward"):
            dx.square().sum().backward()


def test_a_batch_of_gradients():
    x, given = scores(5, 2, 4), (in_rows([[1, 2], [3]]), (5, 5), (2, 1))
    of = [
        torch.autograd.functional.jacobian(lambda x, L=L: L.ctc_loss(x, *given, reduction="none"), x, vectorize=True)
        for L in (K, F)
    ]
    torch.testing.assert_close(*of, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not hasattr(torch, "export"), reason=f"PyTorch {torch.__version__} has no torch.export")
@pytest.mark.filterwarnings("ignore")
def test_compiled_programs_hold_the_operator():
    rows, counts, inputs = torch.tensor([[1, 2, 2], [3, 3, 1]]), torch.tensor([3, 2]), torch.tensor([6, 7])
    x, joined = scores(7, 2, 4).requires_grad_(), rows.flatten()[:5]

    def on_kiln(x, *given):
        with kt.enabled():
            return F.ctc_loss(x, *given)

    for function, given, options in (
        (K.ctc_loss, (rows, inputs, counts), {"fullgraph": True}),
        (K.ctc_loss, (rows, inputs, counts), {"fullgraph": True, "dynamic": True}),
        (K.ctc_loss, (joined, (6, 7), (3, 2)), {"fullgraph": True}),
        (on_kiln, (joined, inputs, counts), {}),  # by PyTorch: their lengths are not known
    ):
        torch._dynamo.reset()
        losses = torch.compile(function, backend="aot_eager", **options)(x, *given), F.ctc_loss(x, *given)
        torch.testing.assert_close(*losses)
        torch.testing.assert_close(*(torch.autograd.grad(loss, x)[0] for loss in losses))


@pytest.mark.parametrize("in_rows_of_labels", [True, False])
def test_requests_are_recorded(in_rows_of_labels):
    net, x = Reader(), torch.randn(8, 2, 4)
    targets = torch.tensor([[1, 2, 3], [4, 5, 4]])
    given = targets if in_rows_of_labels else targets.flatten()[:5], torch.tensor([8, 7]), torch.tensor([3, 2])
    recorded = []
    for each in (net, kt.optimize(copy.deepcopy(net), strict=True)):
        with kt.record() as requests:
            each(x, *given).backward()
        recorded.append(list(requests))
    assert sorted(recorded[0]) == sorted(recorded[1])
    (forward,) = (line for line in recorded[1] if line.startswith("ctc_loss_forward"))
    assert " targets=i32:2x3" in forward and " prefixes=f32:2x8x7" in forward
    with torch.no_grad(), kt.record() as requests:
        net(x, *given)
    assert "prefixes" not in requests.text()


X, TARGETS = scores(5, 2, 4), torch.tensor([[1, 2], [3, 3]])
INPUTS, COUNTS = torch.tensor([5, 4]), torch.tensor([2, 1])
REFUSED = {
    "log_probs has 4 dimensions": (X[None], TARGETS, INPUTS, COUNTS),
    r"log_probs is of \(5, 0, 4\)": (X[:, :0], TARGETS[:0], INPUTS[:0], COUNTS[:0]),
    r"log_probs is of \(0, 2, 4\)": (X[:0], TARGETS, INPUTS * 0, COUNTS),
    "targets has 3 dimensions": (X, TARGETS[None], INPUTS, COUNTS),
    "targets has labels of 1 images": (X, TARGETS[:1], INPUTS, COUNTS),
    r"targets has 4 labels .give the 3 of the lengths": (X, TARGETS.flatten(), INPUTS, COUNTS),
    "input_lengths has 1 lengths": (X, TARGETS, INPUTS[:1], COUNTS),
    "target_lengths has 3 lengths": (X, TARGETS, [5, 4], [2, 1, 1]),
    "input_lengths is of torch.float32": (X, TARGETS, INPUTS.float(), COUNTS),
    "input_lengths is of torch.complex64": (X, TARGETS, INPUTS.to(torch.complex64), COUNTS),
    "target_lengths is of torch.bool": (X, TARGETS, INPUTS, COUNTS > 1),
    "input_lengths is 5 .give a length": (X[:, :1], TARGETS[:1], 5, 2),
    "target_lengths is True": (X, TARGETS, [5, 4], [2, True]),
    "one of the lengths is a tensor": (X, TARGETS, INPUTS, [2, 1]),
    r"input_lengths has 6 .give 0 to 5": (X, TARGETS, INPUTS + 1, COUNTS),
    "input_lengths has -1": (X, TARGETS, [5, -1], [2, 1]),
    r"target_lengths has 3 .give 0 to 2": (X, TARGETS, INPUTS, COUNTS + 1),
    "target_lengths has -1": (X, TARGETS.flatten(), [5, 4], [2, -1]),
    "the label 4 is no class of 4": (X, TARGETS + 1, INPUTS, COUNTS),
    "the label -1 is no class of 4": (X, TARGETS - 2, INPUTS, COUNTS),
    "a label is the blank, 3": (X, TARGETS, INPUTS, COUNTS, 3),
    r"blank is 4 .give a class, 0 to 3": (X, TARGETS, INPUTS, COUNTS, 4),
    "blank is -1": (X, TARGETS, INPUTS, COUNTS, -1),
    "reduction is 'max'": (X, TARGETS, INPUTS, COUNTS, 0, "max"),
    "torch.float64": (X.double(), TARGETS, INPUTS, COUNTS),
    "torch.int64": (X.long(), TARGETS, INPUTS, COUNTS),
}
# PyTorch 1.13 reads outside of its tensors, and later ones still do for labels.
UNSEEN = [message for message in REFUSED if "has -1" in message or "no class" in message]


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused_is_pytorch_s_in_a_model(message):
    given = REFUSED[message]
    with pytest.raises((kiln.InvalidArgument, kiln.Unsupported), match=message):
        K.ctc_loss(*given)
    if message in UNSEEN:
        return

    def outcome():
        try:
            return F.ctc_loss(*given)
        except (RuntimeError, ValueError, TypeError) as error:
            return error

    expected = outcome()
    with warnings.catch_warnings(), kt.enabled():
        warnings.simplefilter("ignore", kiln.Warning)
        actual = outcome()
    if isinstance(expected, Exception):
        assert type(actual) is type(expected) and str(actual) == str(expected)
    else:
        torch.testing.assert_close(actual, expected, equal_nan=True)
