"""Fixtures of the tests of the Python package: one Context on the emulated device."""

import numpy as np
import pytest

import kiln


@pytest.fixture(scope="session")
def context():
    return kiln.Context(driver="emulator", cache="off")


@pytest.fixture
def random():
    return np.random.default_rng(1)


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed (scripts/setup --torch)")


def conv_reference(x, w, pad=0, stride=1):
    """y of conv_forward, in f64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows, columns = w.shape[2:]
    height = (x.shape[2] - rows) // stride + 1
    width = (x.shape[3] - columns) // stride + 1
    y = np.zeros((x.shape[0], w.shape[0], height, width))
    for r in range(rows):
        for s in range(columns):
            part = x[:, :, r : r + stride * height : stride, s : s + stride * width : stride]
            y += np.einsum("nchw,kc->nkhw", part, w[:, :, r, s].astype(np.float64))
    return y
