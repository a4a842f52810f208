"""Messages of kiln.torch.functional about arguments that have no result, or that Kiln does not serve.

And numbers at the ends of what they take."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

import torch.nn.functional as F  # noqa: E402
from comparison import compare  # noqa: E402

import kiln  # noqa: E402
import kiln.torch.functional as K  # noqa: E402

normal = torch.randn
X, IMAGES, LOGITS, CLASSES = normal(2, 4), normal(2, 4, 6, 6), normal(3, 5), torch.tensor([0, 4, 2])
ONES = torch.ones(4)

WRONG = [
    ("conv2d takes an input of 3 or 4 dimensions, and this has 2", lambda: K.conv2d(X, normal(4, 4, 1, 1))),
    ("conv2d takes an input of 3 or 4 dimensions, and this has 5", lambda: K.conv2d(IMAGES[None], normal(4, 4, 1, 1))),
    ("conv2d takes a weight of 4 dimensions", lambda: K.conv2d(IMAGES, normal(4, 4, 1))),
    ("padding is 'full'", lambda: K.conv2d(IMAGES, normal(4, 4, 3, 3), padding="full")),
    ("padding='same' is for a stride of 1", lambda: K.conv2d(IMAGES, normal(4, 4, 3, 3), stride=(1, 2), padding="same")),
    ("conv1d of 6 elements, padded by 0 and 0, has a window of 7", lambda: K.conv1d(IMAGES[0], normal(4, 6, 7))),
    (
        "conv1d of 6 elements, padded by 1 and 1, has a window of 9",
        lambda: K.conv1d(IMAGES[0], normal(4, 6, 5), padding=1, dilation=2),
    ),
    ("relu takes 0 numbers: none", lambda: K.linear(X, normal(3, 4), activation=("relu", 1.0))),
    ("leaky_relu takes 1 numbers", lambda: K.linear(X, normal(3, 4), activation=("leaky_relu", 1.0, 2.0))),
    ("alpha is 0", lambda: K.celu(X, 0.0)),
    ("approximate is 'erf'", lambda: K.gelu(X, "erf")),
    ("min_val is 2.0, max_val is 1.0", lambda: K.hardtanh(X, 2.0, 1.0)),
    ("lambd is -0.5", lambda: K.softshrink(X, -0.5)),
    ("p is -0.1", lambda: K.dropout(X, -0.1)),
    ("p is 1.1", lambda: K.dropout(X, 1.1)),
    ("dim is 2", lambda: K.softmax(X, 2)),
    ("dim is -3", lambda: K.log_softmax(X, -3)),
    ("reduction is 'max'", lambda: K.cross_entropy(LOGITS, CLASSES, reduction="max")),
    ("weight requires a gradient", lambda: K.nll_loss(LOGITS, CLASSES, torch.ones(5, requires_grad=True))),
    ("cross_entropy takes an input of 1 dimension or more", lambda: K.cross_entropy(torch.tensor(1.0), torch.tensor(0))),
    (r"target is of \(2,\)", lambda: K.cross_entropy(LOGITS, CLASSES[:2])),
    ("label_smoothing is -0.1", lambda: K.cross_entropy(LOGITS, CLASSES, label_smoothing=-0.1)),
    ("label_smoothing is 1.1", lambda: K.cross_entropy(LOGITS, CLASSES, label_smoothing=1.1)),
    ("batch_norm takes an input of 2 dimensions or more", lambda: K.batch_norm(ONES, None, None, training=True)),
    ("batch_norm: running statistics require a gradient", lambda: K.batch_norm(X, ONES.clone().requires_grad_(), ONES)),
    ("batch_norm: eps is -1.0", lambda: K.batch_norm(X, ONES, ONES, eps=-1.0)),
    ("batch_norm: momentum is -0.1", lambda: K.batch_norm(X, None, None, training=True, momentum=-0.1)),
    ("batch_norm: momentum is 1.1", lambda: K.batch_norm(X, None, None, training=True, momentum=1.1)),
    (r"batch_norm: bias has the shape \(3,\)", lambda: K.batch_norm(X, ONES, ONES, bias=torch.ones(3))),
    ("batch_norm in training has one value per channel", lambda: K.batch_norm(X[:1], None, None, training=True)),
    ("there are no running statistics", lambda: K.batch_norm(X, None, None)),
    (r"normalized_shape is \(\)", lambda: K.layer_norm(X, ())),
    (r"normalized_shape is \(3,\)", lambda: K.layer_norm(X, (3,))),
    ("weight has other extents", lambda: K.layer_norm(X, (4,), torch.ones(3))),
    ("bias has other extents", lambda: K.layer_norm(X, (4,), ONES, torch.ones(1, 4))),
    ("layer_norm: eps is -1.0", lambda: K.layer_norm(X, (4,), eps=-1.0)),
    ("rms_norm: eps is -1.0", lambda: K.rms_norm(X, (4,), eps=-1.0)),
    ("group_norm takes an input of 2 dimensions or more", lambda: K.group_norm(ONES, 2)),
    ("num_groups is 0", lambda: K.group_norm(X, 0)),
    ("num_groups is 3", lambda: K.group_norm(X, 3)),
    ("group_norm: eps is -1.0", lambda: K.group_norm(X, 2, eps=-1.0)),
    ("instance_norm takes an input of 3 dimensions or more", lambda: K.instance_norm(X)),
    (
        "instance_norm: running statistics require a gradient",
        lambda: K.instance_norm(IMAGES, ONES, ONES.clone().requires_grad_()),
    ),
    ("instance_norm: momentum is 2", lambda: K.instance_norm(IMAGES, momentum=2)),
    ("instance_norm has one element per channel", lambda: K.instance_norm(IMAGES[..., :1, :1])),
    ("local_response_norm takes an input of 3 dimensions or more", lambda: K.local_response_norm(X, 3)),
    ("size is 0", lambda: K.local_response_norm(IMAGES, 0)),
    (r"padding is \(2, 2\) and kernel_size \(3, 3\)", lambda: K.max_pool2d(IMAGES, 3, padding=2)),
    ("gives no output", lambda: K.max_pool2d(IMAGES, 7)),
    ("divisor_override is 0", lambda: K.avg_pool2d(IMAGES, 2, divisor_override=0)),
    (r"output_size is \(2, 2, 2\)", lambda: K.adaptive_avg_pool2d(IMAGES, (2, 2, 2))),
    (r"indices are of \(2, 4\)", lambda: K.max_unpool2d(IMAGES, torch.zeros(2, 4, dtype=torch.long), 2)),
    ("the first factor has 4 columns and the second 5 rows", lambda: K.mm(X, normal(5, 3))),
    ("linear takes an input of 1 dimension or more", lambda: K.linear(torch.tensor(1.0), ONES)),
    ("mm takes two matrices", lambda: K.mm(X, ONES)),
    ("mm takes two matrices", lambda: K.mm(IMAGES[0], X.t())),
    ("bmm takes two batches of as many matrices", lambda: K.bmm(IMAGES[0], IMAGES[0, :3])),
    ("bmm takes two batches of as many matrices", lambda: K.bmm(IMAGES[0], X)),
    ("matmul takes vectors and matrices", lambda: K.matmul(X, torch.tensor(1.0))),
    ("matmul takes vectors and matrices", lambda: K.matmul(torch.tensor(1.0), X)),
    ("addmm takes two matrices", lambda: K.addmm(ONES, IMAGES[0], X.t())),
    ("baddbmm takes two batches of matrices", lambda: K.baddbmm(ONES, X, X.t())),
]


@pytest.mark.parametrize("message, call", WRONG, ids=[message for message, _ in WRONG])
def test_a_wrong_argument_is_named(message, call):
    with pytest.raises(kiln.InvalidArgument, match=message):
        call()


NOT_SERVED = [
    ("a result in float64", lambda: K.softmax(X, 1, dtype=torch.float64)),
    ("cross_entropy with targets that are probabilities", lambda: K.cross_entropy(LOGITS, LOGITS.softmax(1))),
    ("size_average or reduce is given", lambda: K.cross_entropy(LOGITS, CLASSES, size_average=True)),
    ("size_average or reduce is given", lambda: K.nll_loss(LOGITS, CLASSES, reduce=False)),
    ("local_response_norm of the even size 4", lambda: K.local_response_norm(IMAGES, 4)),
    ("divisive_norm of 6 dimensions", lambda: K.divisive_norm(normal(1, 1, 1, 2, 3, 3), 3)),
    ("of 6 elements to 4: its windows are not equal", lambda: K.adaptive_avg_pool2d(IMAGES, (6, 4))),
    ("of 6 elements to 0: its windows are not equal", lambda: K.adaptive_avg_pool2d(IMAGES, (6, 0))),
    ("of 0 elements to 1: its windows are not equal", lambda: K.adaptive_max_pool2d(IMAGES[..., :0], 1)),
    ("of 6 elements to 12: its windows are not equal", lambda: K.adaptive_avg_pool2d(IMAGES, 12)),
    (
        "interpolate of torch.uint8 in mode bilinear",
        lambda: K.interpolate(torch.ones(1, 1, 2, 2, dtype=torch.uint8), 3, mode="bilinear"),
    ),
    ("pad of torch.uint8 with 256", lambda: K.pad(torch.ones(4, 4, dtype=torch.uint8), (1, 1), value=256)),
    ("pad of torch.uint8 with -1", lambda: K.pad(torch.ones(4, 4, dtype=torch.uint8), (1, 1), value=-1)),
    ("pad of torch.int32 with 0.5", lambda: K.pad(torch.ones(4, 4, dtype=torch.int32), (1, 1), value=0.5)),
]


@pytest.mark.parametrize("message, call", NOT_SERVED, ids=[message for message, _ in NOT_SERVED])
def test_what_is_not_served_is_named(message, call):
    with pytest.raises(kiln.Unsupported, match=message):
        call()


AT_THE_END = {
    "softshrink of 0": lambda L, x: L.softshrink(x, 0.0),
    "hardtanh to one number": lambda L, x: L.hardtanh(x, 0.5, 0.5),
    "dropout of none": lambda L, x: L.dropout(x, 0.0),
    "dropout of all": lambda L, x: L.dropout(x, 1.0),
    "the last dimension": lambda L, x: L.softmax(x, 1),
    "the first dimension from the end": lambda L, x: L.softmax(x, -2),
    "labels that are all smoothed": lambda L, x: L.cross_entropy(x, torch.tensor([0, 3]), label_smoothing=1.0),
    "a momentum of 1": lambda L, x: L.batch_norm(x, ONES.clone(), ONES.clone(), training=True, momentum=1.0),
    "an eps of 0": lambda L, x: L.layer_norm(x, (4,), eps=0.0),
    "a group for each channel": lambda L, x: L.group_norm(x.view(2, 2, 2), 2),
    "a window of one element": lambda L, x: L.local_response_norm(x.view(2, 2, 2), 1),
    "a padding of half of the window": lambda L, x: L.avg_pool1d(x, 2, padding=1),
    "a window of the whole input": lambda L, x: L.max_pool1d(x, 4),
    "a filter of the whole input": lambda L, x: L.conv1d(x.view(1, 2, 4), torch.ones(3, 2, 4)),
    "a vector": lambda L, x: L.linear(x[0], torch.ones(3, 4)),
}


@pytest.mark.parametrize("name", AT_THE_END)
def test_the_last_number_that_is_taken_gives_what_pytorch_gives(name):
    call = AT_THE_END[name]
    torch.manual_seed(3)
    compare(lambda x: call(K, x), lambda x: call(F, x), normal(2, 4))
