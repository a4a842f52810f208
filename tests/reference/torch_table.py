"""Tools of the tables of calls by PyTorch: a call is a request, then `name values...` for each operand in logical order
(all exact in f32), then `=name values...` for what comes out."""
import torch

torch.manual_seed(1)


def draw(*shape):
    """Multiples of 1/64, zeros and equal ones among them."""
    return torch.randint(-100, 100, shape).to(torch.float64) / 64


def show(name, tensor):
    print(name, *("%.17g" % value for value in tensor.reshape(-1).tolist()))


def call(request, operands, results, tolerance=None):
    """`tolerance`: of results whose operands are not exact in f32."""
    print("request", request)
    if tolerance is not None:
        print("tolerance", tolerance)
    for name, tensor in operands.items():
        show(name, tensor)
    for name, tensor in results.items():
        show("=" + name, tensor)


def extents(tensor):
    return "x".join(map(str, tensor.shape))
