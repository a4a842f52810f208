"""Kiln's operations in JAX: any of them by `call`, and a convolution with its gradients.

    import kiln_jax
    kiln_jax.load("build-jax/libkiln_jax.so")
    y = jax.jit(lambda x, w, b: kiln_jax.conv(x, w, b, pad=1, relu=True))(x, w, b)
"""

import ctypes
import functools

import jax
import jax.numpy as jnp

TARGET = "kiln_call"


def load(library):
    """Registers the functions of libkiln_jax.so with JAX. Once in a process, before the first call."""
    functions = ctypes.cdll.LoadLibrary(str(library))
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(functions.kiln_call_cpu), platform="cpu")
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(functions.kiln_call_cuda), platform="CUDA")


def call(what, results, **tensors):
    """Any operation by its name: `what` is a request without tensors ("softmax_forward axis=1").

    `tensors`: what it reads, and `results`: a jax.ShapeDtypeStruct for each tensor that it writes, by the names that
    docs/request-syntax.md has for them. Returns the results, in their order.
    """
    names = ",".join([*tensors, *results])
    kinds = tuple(results.values())
    made = jax.ffi.ffi_call(TARGET, kinds, vmap_method="sequential")(*tensors.values(), what=what, names=names)
    return made if len(made) > 1 else made[0]


def like(array, shape=None):
    """The argument of `call` for a result of the type and, if not given, the shape of `array`."""
    return jax.ShapeDtypeStruct(array.shape if shape is None else shape, array.dtype)


def _axes(value, axes):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes


def conv(x, w, bias=None, *, stride=1, pad=0, dilation=1, groups=1, relu=False):
    """y = conv(x, w) + bias, then relu if asked for. x: N,C,spatial; w: K,C/groups,spatial; one to three dimensions.

    `stride`, `pad` and `dilation`: a number, or one for each axis; a pad counts on both sides. Differentiable by x, w
    and bias.
    """
    axes = x.ndim - 2
    return _conv(x, w, bias, (_axes(stride, axes), _axes(pad, axes), _axes(dilation, axes), groups), relu)


def _words(window):
    stride, pad, dilation, groups = (value if isinstance(value, tuple) else (value,) for value in window)
    numbers = {"stride": stride, "pad": pad, "dilation": dilation, "groups": groups}
    return "".join(f" {name}={','.join(map(str, values))}" for name, values in numbers.items())


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _conv(x, w, bias, window, relu):
    stride, pad, dilation, _ = window
    extents = [  # at least 1: of a filter that is too large Kiln says so
        max((extent + 2 * p - d * (taps - 1) - 1) // s + 1, 1)
        for extent, taps, s, p, d in zip(x.shape[2:], w.shape[2:], stride, pad, dilation)
    ]
    stages = [name for name, used in (("bias", bias is not None), ("relu", relu)) if used]
    epilogue = f" epilogue={'+'.join(stages)}" if stages else ""
    tensors = {"x": x, "w": w} | ({} if bias is None else {"bias": bias})
    y = like(x, (x.shape[0], w.shape[0], *extents))
    return call("conv_forward" + _words(window) + epilogue, {"y": y}, **tensors)


def _forward(x, w, bias, window, relu):
    y = _conv(x, w, bias, window, relu)
    return y, (x, w, bias, y if relu else None)


def _backward(window, relu, kept, dy):
    x, w, bias, y = kept
    if relu:
        dy = jnp.where(y > 0, dy, 0)
    dx = call("conv_backward_data" + _words(window), {"dx": like(x)}, dy=dy, w=w)
    dw = call("conv_backward_filter" + _words(window), {"dw": like(w)}, x=x, dy=dy)
    return dx, dw, None if bias is None else call("conv_backward_bias", {"db": like(bias)}, dy=dy)


_conv.defvjp(_forward, _backward)
