"""ONNX models as the bytes of their files, without the package onnx."""

TYPES = {"float": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "double": 11}


def _varint(value):
    low, high = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(high) if high else bytes([low])


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    value = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def tensor(name, array):
    """A constant. `array`: of NumPy."""
    extents = b"".join(_number(1, extent) for extent in array.shape)
    kind = TYPES[{"float32": "float"}.get(str(array.dtype), str(array.dtype))]
    return extents + _number(2, kind) + _bytes(8, name) + _bytes(9, array.tobytes())


def value(name, type, extents):
    """An input or output. `extents`: numbers, or words where they are open; None: the file does not say them."""
    content = _number(1, TYPES[type])
    if extents is not None:
        content += _bytes(2, b"".join(_bytes(1, _bytes(2, e) if isinstance(e, str) else _number(1, e)) for e in extents))
    return _bytes(1, name) + _bytes(2, _bytes(1, content))


def node(kind, inputs, outputs, **integers):
    """`integers`: attributes, one number or several."""
    parts = b"".join(_bytes(1, name) for name in inputs) + b"".join(_bytes(2, name) for name in outputs)
    for name, number in integers.items():
        several = isinstance(number, (list, tuple))
        content = b"".join(_number(8, each) for each in number) if several else _number(3, number)
        parts += _bytes(5, _bytes(1, name) + content + _number(20, 7 if several else 2))
    return parts + _bytes(3, outputs[0]) + _bytes(4, kind)


def model(nodes, inputs, outputs, tensors=(), opset=13):
    graph = b"".join(_bytes(1, each) for each in nodes) + _bytes(2, "small")
    graph += b"".join(_bytes(5, each) for each in tensors)
    graph += b"".join(_bytes(11, each) for each in inputs) + b"".join(_bytes(12, each) for each in outputs)
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, opset))
