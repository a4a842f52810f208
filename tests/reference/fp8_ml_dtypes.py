#!/usr/bin/env python3
"""Writes fp8_ml_dtypes.txt: the value of each of the 256 codes of float8_e4m3fn and float8_e5m2, by ml_dtypes (0.6.0;
the types of JAX and TensorFlow), for convert_test.cpp.

    python3 tests/reference/fp8_ml_dtypes.py > tests/reference/fp8_ml_dtypes.txt
"""
import ml_dtypes
import numpy

CODES = numpy.arange(256, dtype=numpy.uint8)
TYPES = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)

for code, *values in zip(CODES, *(CODES.view(each).astype(numpy.float64) for each in TYPES)):
    print(code, *(float(value).hex() if numpy.isfinite(value) else value for value in values))
