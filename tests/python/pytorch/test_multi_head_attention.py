"""Attention of PyTorch in nn.MultiheadAttention and the layers of transformers."""

import copy
import re
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")

from attention_cases import L, M, close, seeded  # noqa: E402, F401
from torch import nn  # noqa: E402

import kiln  # noqa: E402
import kiln.torch as kt  # noqa: E402
import kiln.torch.functional as K  # noqa: E402

WIDTH = 8


def optimized(net, **words):
    """A copy on Kiln, in which every layer has to be."""
    return kt.optimize(copy.deepcopy(net), strict=True, **words)


def tensors_of(result):
    return [each for each in (result if isinstance(result, tuple) else (result,)) if each is not None]


def same_with_gradients(net, *given, mine=None, **words):
    """Results and gradients of all inputs and parameters are PyTorch's; a tensor that is given twice stays one."""
    mine = optimized(net) if mine is None else mine

    def run(of):
        of.zero_grad()
        made = {id(each): each.detach().clone().requires_grad_() for each in given}
        results = tensors_of(of(*(made[id(each)] for each in given), **words))
        torch.manual_seed(5)
        sum((each * torch.randn(each.shape)).sum() for each in results).backward()
        return [*(each.detach() for each in results), *(each.grad for each in (*made.values(), *of.parameters()))]

    close(run(mine), run(net), 1e-4)


def causal_mask(extent=M):
    return torch.full((extent, extent), -torch.inf).triu(1)


PADDED = torch.tensor([[False, False, True], [False, True, True]])  # images and keys
ALL_HEADS = torch.arange(2 * 2 * M * M).view(4, M, M) % 4 == 3
ALL_HEADS[..., 0] = False  # the key that all queries see
MULTI_HEAD = {
    "nothing": ({}, {}),
    "weights of heads": ({}, {"need_weights": True, "average_attn_weights": False}),
    "weights": ({"batch_first": True}, {"need_weights": True, "key_padding_mask": PADDED}),
    "weights and two masks": ({}, {"need_weights": True, "key_padding_mask": PADDED, "attn_mask": causal_mask()}),
    "images first": ({"batch_first": True, "bias": False}, {"attn_mask": causal_mask()}),
    "a mask of bools": ({}, {"attn_mask": causal_mask() != 0}),
    "a mask of heads": ({}, {"attn_mask": ALL_HEADS}),
    "a mask of heads and padding": ({}, {"attn_mask": ALL_HEADS, "key_padding_mask": PADDED}),
    "padding of floats": ({}, {"key_padding_mask": torch.randn(2, M)}),
    "further keys": (
        {"add_bias_kv": True, "add_zero_attn": True},
        {"key_padding_mask": PADDED, "attn_mask": causal_mask()},
    ),
    "a further key": ({"add_bias_kv": True}, {"attn_mask": causal_mask() != 0}),
    "a key of zeros": ({"add_zero_attn": True}, {"need_weights": True, "attn_mask": ALL_HEADS}),
}
quiet = pytest.mark.filterwarnings("ignore:Support for mismatched")


@quiet
@pytest.mark.parametrize("name", MULTI_HEAD)
def test_multi_head_attention_is_pytorch_s(name):
    made, words = MULTI_HEAD[name]
    net, x = nn.MultiheadAttention(WIDTH, 2, **made), torch.randn(M, 2, WIDTH)
    x = x.transpose(0, 1) if made.get("batch_first") else x
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.5)
    same_with_gradients(net, x, x, x, **{"need_weights": False, **words})


def test_multi_head_attention_of_other_keys_is_pytorch_s():
    q, memory, values = torch.randn(M, 2, WIDTH), torch.randn(L, 2, WIDTH), torch.randn(L, 2, 4)
    net = nn.MultiheadAttention(WIDTH, 2)
    same_with_gradients(net, q, memory, memory, need_weights=False)
    same_with_gradients(net, q, memory, memory + 1)
    same_with_gradients(net, q, q + 1, q, need_weights=False)
    same_with_gradients(nn.MultiheadAttention(WIDTH, 2, vdim=4), q, memory, values, need_weights=False)
    same_with_gradients(nn.MultiheadAttention(WIDTH, 2, kdim=4, bias=False), q, values, memory, need_weights=False)


def test_one_image_is_pytorch_s():
    x, net = torch.randn(M, WIDTH), nn.MultiheadAttention(WIDTH, 2)
    same_with_gradients(net, x, x, x, key_padding_mask=PADDED[0], attn_mask=ALL_HEADS[:2])
    same_with_gradients(net, x, x, x, key_padding_mask=PADDED[1], need_weights=False)


def test_the_hint_that_a_mask_is_causal_takes_its_place():
    x, net = torch.randn(M, 2, WIDTH), nn.MultiheadAttention(WIDTH, 2)
    weights = (net.in_proj_weight, net.in_proj_bias, None, None, False, 0.0, net.out_proj.weight, net.out_proj.bias)
    words = {"need_weights": False, "attn_mask": causal_mask()}
    expected = net(x, x, x, **words)[0]
    with kt.record() as requests:
        y, _ = K.multi_head_attention_forward(x, x, x, WIDTH, 2, *weights, **words, is_causal=True)
    close([y], [expected])
    (line,) = (each for each in requests if each.startswith("attention"))
    assert " right=0" in line and "bias" not in line
    words["need_weights"] = True
    close(K.multi_head_attention_forward(x, x, x, WIDTH, 2, *weights, **words, is_causal=True), net(x, x, x, **words))
    words |= {"need_weights": False, "key_padding_mask": PADDED}
    words["attn_mask"] = ALL_HEADS  # beside padding the mask itself counts
    y, _ = K.multi_head_attention_forward(x, x, x, WIDTH, 2, *weights, **words, is_causal=True)
    close([y], [net(x, x, x, **words)[0]])
    with pytest.raises(kiln.InvalidArgument, match="without attn_mask"):
        K.multi_head_attention_forward(x, x, x, WIDTH, 2, *weights, is_causal=True)


@quiet
def test_queries_without_keys_give_zeros_before_the_last_projection():
    x, net = torch.randn(M, 2, WIDTH), nn.MultiheadAttention(WIDTH, 2)
    nn.init.normal_(net.out_proj.bias)
    hidden = torch.zeros(M, M, dtype=torch.bool)
    hidden[1] = True
    y, _ = optimized(net)(x, x, x, attn_mask=hidden, need_weights=False)
    close([y[1]], [net.out_proj.bias.expand(2, WIDTH)])
    _, weights = optimized(net)(x, x, x, attn_mask=hidden)
    _, expected = net(x, x, x, attn_mask=hidden)
    torch.testing.assert_close(weights, expected, equal_nan=True)


def test_multi_head_attention_in_half_precision_and_autocast():
    x, net = torch.randn(M, 2, WIDTH), nn.MultiheadAttention(WIDTH, 2, add_bias_kv=True)
    mask = causal_mask()
    for asked in (False, True):
        expected = net(x, x, x, attn_mask=mask, need_weights=asked)
        half = x.bfloat16()
        y, weights = optimized(net).to(torch.bfloat16)(half, half, half, attn_mask=mask, need_weights=asked)
        mine = optimized(net)
        with torch.autocast("cpu", torch.bfloat16):
            cast = mine(x, x, x, attn_mask=mask, need_weights=asked)
        assert {each.dtype for each in tensors_of((y, weights, *cast))} == {torch.bfloat16}
        close(tensors_of((y, weights)), [each.bfloat16() for each in tensors_of(expected)], 0.06)
        close(tensors_of(cast), [each.bfloat16() for each in tensors_of(expected)], 0.06)
        cast[0].float().sum().backward()
        assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in mine.parameters())


def test_gradients_of_gradients_of_multi_head_attention():
    net, x = nn.MultiheadAttention(WIDTH, 2), torch.randn(M, 2, WIDTH)

    def penalty(of):
        given = x.clone().requires_grad_()
        asked = of is net  # else PyTorch 2.x has no gradients of gradients
        y, _ = of(given, given, given, need_weights=asked, attn_mask=causal_mask())
        first = torch.autograd.grad(y.square().sum(), (given, *of.parameters()), create_graph=True)
        sum(each.square().sum() for each in first).backward()
        return [*(each.detach() for each in first), given.grad, *(each.grad for each in of.parameters())]

    close(penalty(optimized(net)), penalty(net), 1e-4)


LAYERS = {
    "encoder": lambda **words: nn.TransformerEncoderLayer(WIDTH, 2, 12, dropout=0.0, **words),
    "decoder": lambda **words: nn.TransformerDecoderLayer(WIDTH, 2, 12, dropout=0.0, **words),
}


@pytest.mark.parametrize("kind, words", [("encoder", {}), ("decoder", {"batch_first": True, "norm_first": True})])
def test_a_training_step_of_a_layer_of_transformers_is_pytorch_s(kind, words):
    net = LAYERS[kind](**words)
    x, memory = torch.randn(2, M, WIDTH), torch.randn(2, L, WIDTH)
    if not words:
        x, memory = x.transpose(0, 1), memory.transpose(0, 1)
    mask = {"src_mask" if kind == "encoder" else "tgt_mask": causal_mask()}
    mine = optimized(net)
    same_with_gradients(net, *((x,) if kind == "encoder" else (x, memory)), mine=mine, **mask)
    report = kt.report(mine)
    assert not report.on_pytorch
    attentions = {row.place for row in report if row.function == "multi_head_attention_forward"}
    assert attentions == ({"self_attn"} if kind == "encoder" else {"self_attn", "multihead_attn"})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_layers_of_transformers_run_on_kiln_without_gradients(fold, mode):
    net = nn.TransformerEncoder(LAYERS["encoder"](batch_first=True), 2).eval()
    x, mine = torch.randn(2, M, WIDTH), optimized(net, fold=fold)
    for words in ({}, {"mask": causal_mask() != 0}, {"src_key_padding_mask": PADDED}):
        with torch.enable_grad():  # PyTorch's own fast path leaves rows of padding out
            expected = net(x, **words)
        with mode():
            result = mine(x, **words)
        close([result], [expected])
    report = kt.report(mine)
    functions = {row.function for row in report}
    assert not report.on_pytorch and "multi_head_attention_forward" in functions
    assert not any("native" in each or "fwd" in each for each in functions)


def test_an_attention_module_runs_on_kiln_in_evaluation():
    net, x = nn.MultiheadAttention(WIDTH, 2, batch_first=True).eval(), torch.randn(2, M, WIDTH)
    mine = optimized(net)
    with torch.no_grad():
        close(tensors_of(mine(x, x, x)), tensors_of(net(x, x, x)))
    assert [row.function for row in kt.report(mine).on_kiln] == ["multi_head_attention_forward"]


def test_a_layer_with_dropout_trains_on_kiln():
    torch.manual_seed(6)
    net = optimized(nn.TransformerEncoderLayer(WIDTH, 2, 12, dropout=0.5, batch_first=True))
    x = torch.randn(2, M, WIDTH)
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        runs.append(net(x))
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])
    runs[2].square().mean().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in net.parameters())
    weights = optimized(nn.MultiheadAttention(WIDTH, 2, dropout=0.5))(x, x, x)[1]
    assert (weights == 0).any()


def test_what_is_not_served_is_computed_by_pytorch():
    x = torch.randn(M, 2, WIDTH)
    for net, given, reason in (
        (nn.MultiheadAttention(WIDTH, 2).double(), x.double(), "float64"),
    ):
        mine = kt.optimize(copy.deepcopy(net))
        results = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kiln.Warning)
            for each in (mine, net):
                torch.manual_seed(4)
                results.append(tensors_of(each(given, given, given)))
        close(*results)
        assert reason in kt.report(mine).on_pytorch[0].reason
        with pytest.raises((kiln.Unsupported, kiln.InvalidArgument), match=reason):
            optimized(net)(given, given, given)


def multi_head(x=None, **words):
    """Kiln's function, for arguments that differ from good ones."""
    x = torch.randn(M, 2, WIDTH) if x is None else x
    weights = {"in_proj_weight": torch.randn(3 * WIDTH, WIDTH), "out_proj_weight": torch.randn(WIDTH, WIDTH)}
    given = {"query": x, "key": x, "value": x, "embed_dim_to_check": WIDTH, "num_heads": 2, **weights, "in_proj_bias": None}
    given |= {"bias_k": None, "bias_v": None, "add_zero_attn": False, "dropout_p": 0.0, "out_proj_bias": None}
    return K.multi_head_attention_forward(**{**given, **words})


def test_wrong_arguments_raise_pytorch_s_errors():
    x, net = torch.randn(M, 2, WIDTH), nn.MultiheadAttention(WIDTH, 2)
    mine = kt.optimize(copy.deepcopy(net))
    for given, words in (
        ((x, x, x[:2]), {}),
        ((x[..., :4], x, x), {}),
        ((x, x[0], x[0]), {}),
        ((x[None], x, x), {}),
        ((x, x, x), {"attn_mask": torch.zeros(M, L)}),
        ((x, x, x), {"attn_mask": torch.zeros(M, M, dtype=torch.int32)}),
        ((x, x, x), {"key_padding_mask": PADDED[:1]}),
        ((x.double(), x.double(), x.double()), {}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kiln.Warning)
            with pytest.raises((RuntimeError, AssertionError)) as expected:
                net(*given, **words)
            with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
                mine(*given, **words)
    row = torch.randn(1, 1, WIDTH)
    for words, message in (
        ({"key": x[:, :1], "value": x[:, :1]}, "another batch"),
        ({"value": x[..., :4]}, "other extents than the key"),
        ({"value": x[:2]}, "a value for each key|other extents than the key"),
        ({"query": x[0]}, "other dimensions"),
        ({"query": x[None]}, "4 dimensions"),
        ({"embed_dim_to_check": 4}, "embed_dim_to_check"),
        ({"num_heads": 3}, "num_heads is 3"),
        ({"in_proj_weight": None}, "weights of a projection"),
        ({"in_proj_weight": torch.randn(WIDTH, WIDTH)}, "weights of a projection"),
        ({"use_separate_proj_weight": True}, "weights of a projection"),
        ({"in_proj_bias": torch.randn(WIDTH)}, "in_proj_bias"),
        ({"bias_k": row}, "bias_k or bias_v"),
        ({"bias_k": row, "bias_v": row[..., :4]}, "bias_k or bias_v"),
        ({"bias_k": row.half(), "bias_v": row}, "bias_k is torch.float16"),
        ({"out_proj_weight": torch.randn(WIDTH, 4)}, "out_proj_weight"),
        ({"out_proj_bias": torch.randn(4)}, "out_proj_weight"),
        ({"attn_mask": torch.zeros(2, M, M)}, "attn_mask is of"),
        ({"attn_mask": torch.zeros(M, M, dtype=torch.uint8)}, "attn_mask is torch.uint8"),
        ({"key_padding_mask": torch.zeros(2, L)}, "key_padding_mask is of"),
        ({"key_padding_mask": torch.zeros(2, M).int()}, "key_padding_mask is torch.int32"),
        ({"add_zero_attn": 1}, "add_zero_attn is 1"),
    ):
        with pytest.raises(kiln.InvalidArgument, match=message):
            multi_head(x, **words)
    with pytest.raises(kiln.Unsupported, match="static"):
        multi_head(x, static_k=x)
    with pytest.raises(kiln.InvalidArgument, match="dropout_p is 1.5"):
        multi_head(x, dropout_p=1.5)
    assert multi_head(x, dropout_p=1.5, training=False)[0].shape == x.shape


def test_requests_of_a_layer_are_recorded():
    net, x = nn.MultiheadAttention(WIDTH, 2), torch.randn(M, 2, WIDTH)
    words = {"need_weights": False, "attn_mask": causal_mask()}
    with kt.record() as requests:
        net(x, x, x, **words)[0].sum().backward()
    names = [each.split()[0] for each in requests]
    assert names.count("attention_forward") == names.count("attention_backward") == 1
    assert requests.counts[requests[0]] == 1 and names.count("gemm") >= 4
    with kt.record() as own:
        optimized(net)(x, x, x, **words)[0].sum().backward()
    assert list(own) == list(requests)


@pytest.mark.parametrize("first", (False, True))
def test_rows_of_a_layer_keep_their_order_in_memory(first):
    x = torch.randn(2, M, WIDTH)
    net = optimized(nn.MultiheadAttention(WIDTH, 2, batch_first=first))
    with kt.record() as requests:
        net(*[x if first else x.transpose(0, 1).contiguous()] * 3, need_weights=False)
    (line,) = (each for each in requests if each.startswith("attention"))
    images, rows = (3 * M * WIDTH, 3 * WIDTH) if first else (3 * WIDTH, 2 * 3 * WIDTH)
    assert f" q=f32:2x2x{M}x{WIDTH // 2}:{images},{WIDTH // 2},{rows},1 " in line


@pytest.mark.skipif(not hasattr(torch, "export"), reason="this PyTorch has no torch.export, which 2.1 has")
def test_compiled_programs_hold_the_operators():
    net, x = nn.MultiheadAttention(WIDTH, 2), torch.randn(M, 2, WIDTH)
    mine = torch.compile(optimized(net), backend="aot_eager", fullgraph=True)
    same_with_gradients(net, x, x, x, mine=mine, need_weights=False, attn_mask=causal_mask())
