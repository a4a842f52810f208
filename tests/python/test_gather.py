"""gather against NumPy's own."""

import numpy as np
import pytest

import kiln


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8])
def test_gather_takes_along_an_axis(context, random, dtype):
    x = (random.standard_normal((3, 7, 5)) * 9).astype(dtype)
    indices = random.integers(-7, 7, (3, 4, 5), dtype=np.int32)
    np.testing.assert_array_equal(
        kiln.gather(x, indices, axis=1, context=context), np.take_along_axis(x, indices.astype(np.int64) % 7, 1)
    )
    slices = indices[:1, :, :1]
    np.testing.assert_array_equal(
        kiln.gather(x, slices, axis=-2, context=context), np.take(x, slices.reshape(-1), axis=1)
    )


def test_an_index_outside_gives_zero(context):
    x = np.arange(1, 7, dtype=np.float32)
    indices = np.array([5, 6, -6, -7, 2**31 - 1, -(2**31)], np.int32)
    np.testing.assert_array_equal(kiln.gather(x, indices, context=context), [6, 0, 1, 0, 0, 0])


def test_a_table_serves_every_batch(context, random):
    table = random.standard_normal((1, 11, 6), dtype=np.float32)
    for n in (3, 2):
        words = random.integers(0, 11, (n, 4, 1), dtype=np.int32)
        np.testing.assert_array_equal(
            kiln.gather(table, words, axis=1, dynamic_batch=True, context=context), table[0][words[..., 0]]
        )


@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_is_index_add(context, torch, axis):
    y = torch.randn(5, 6)
    indices = torch.randint(0, y.shape[axis], (9,))
    updates = torch.randn(*(9 if i == axis else extent for i, extent in enumerate(y.shape)))
    expected = y.index_add(axis, indices, updates)
    at = indices.int().view([9 if i == axis else 1 for i in range(2)])
    kiln.scatter(updates, at, out=y, axis=axis, beta=1, context=context)
    assert (y - expected).abs().max().item() <= 1e-5


@pytest.mark.parametrize(("mode", "reduction"), [("add", "sum"), ("mul", "prod"), ("min", "amin"), ("max", "amax")])
def test_scatter_is_scatter_reduce(context, torch, mode, reduction):
    updates, indices = torch.randn(4, 9), torch.randint(0, 3, (4, 9))
    indices[0] = 1  # nothing at the others
    identity = {"add": 0.0, "mul": 1.0, "min": float("inf"), "max": -float("inf")}[mode]
    expected = torch.full((4, 3), identity).scatter_reduce(1, indices, updates, reduction)
    y = kiln.scatter(updates, indices.int(), out=torch.empty(4, 3), axis=1, mode=mode, context=context)
    torch.testing.assert_close(y, expected)
