"""Workspace from the application: the functions of workspace_allocator, on the emulated device."""

import threading

import numpy as np
import pytest

import kiln

# Few results of a long sum: it is split.
LONG_PRODUCT = "gemm a=f32:2x20000 b=f32:20000x3"


class Allocator:
    """Memory of another Context's, by address; `calls` counts what was allocated and released."""

    def __init__(self):
        self.context = kiln.Context(driver="emulator", cache="off")
        self.held = {}
        self.allocated = self.released = 0
        self.threads = set()

    def allocate(self, size, stream):
        assert size > 0 and stream == 0
        memory = kiln.DeviceMemory(self.context, size)
        self.held[memory.data] = memory, size
        self.allocated += 1
        self.threads.add(threading.get_ident())
        return memory.data

    def release(self, address, size, stream):
        assert self.held.pop(address)[1] == size and stream == 0
        self.released += 1


def contexted(allocate, release):
    return kiln.Context(driver="emulator", cache="off", workspace_allocator=(allocate, release))


@pytest.fixture
def long_product(random):
    """Factors of a product that needs workspace, as its sums are long."""
    a, b = random.standard_normal((2, 20000), np.float32), random.standard_normal((20000, 3), np.float32)
    assert kiln.plan(LONG_PRODUCT).workspace_bytes > 0
    return a, b


def test_a_call_takes_its_workspace_from_the_allocator_and_gives_it_back(long_product):
    a, b = long_product
    allocator = Allocator()
    context = contexted(allocator.allocate, allocator.release)
    for _ in range(2):
        np.testing.assert_allclose(kiln.gemm(a, b, context=context), a @ b, rtol=1e-4, atol=1e-2)
    assert allocator.allocated == allocator.released == 2
    assert not allocator.held and allocator.threads == {threading.get_ident()}
    kiln.tensor_set(out=np.empty(3, np.float32), value=1.0, context=context)  # needs none
    assert allocator.allocated == 2


def test_an_allocator_without_memory_ends_the_call_before_anything_is_enqueued(long_product):
    a, b = long_product
    c = np.full((2, 3), 7, np.float32)
    needed = kiln.plan(LONG_PRODUCT).workspace_bytes

    def raises(size, stream):
        raise MemoryError(f"{size} bytes are too many")

    for allocate, kind, said in (
        (raises, kiln.OutOfMemory, f"the workspace allocator raised MemoryError: {needed} bytes are too many"),
        (lambda size, stream: None, kiln.OutOfMemory, f"the workspace allocator has no {needed} bytes"),
        (lambda size, stream: "here", kiln.InvalidArgument, "the workspace allocator returned a str .return an address"),
    ):
        with pytest.raises(kind, match=said):
            kiln.gemm(a, b, out=c, context=contexted(allocate, lambda *_: pytest.fail("nothing to release")))
    assert (c == 7).all()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_release_raises_is_told_and_the_call_goes_on(long_product):
    a, b = long_product
    allocator = Allocator()

    def release(address, size, stream):
        allocator.release(address, size, stream)
        raise RuntimeError("release failed")

    c = kiln.gemm(a, b, context=contexted(allocator.allocate, release))
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("given", [3, (1, 2), (print,)], ids=str)
def test_an_allocator_is_two_functions(given):
    with pytest.raises(kiln.InvalidArgument, match="workspace_allocator is .*give two functions"):
        kiln.Context(driver="emulator", cache="off", workspace_allocator=given)
