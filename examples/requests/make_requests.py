#!/usr/bin/env python3
"""Writes the requests of a suite of layers: make_requests.py SUITE.csv KILN > SUITE.txt

Each row becomes the request of its direction. A row that the program KILN refuses stands as a comment with the reason, so
that the file widens when it is made again (tests/cli/suite_test.cpp asks for every row).
"""
import csv
import subprocess
import sys

# The operation of a direction, and its operands in the order of docs/request-syntax.md.
OPERATIONS = {
    "fwd": ("conv_forward", ("x", "w")),
    "dgrad": ("conv_backward_data", ("dy", "w", "dx")),
    "wgrad": ("conv_backward_filter", ("x", "dy", "dw")),
}


def outputs(row, extent, window, axis):
    """Outputs of the convolution along an axis, "h" or "w"."""
    n, size, pad, stride, dilation = (int(row[k]) for k in (extent, window, f"pad_{axis}", f"stride_{axis}", f"dil_{axis}"))
    return (n + 2 * pad - dilation * (size - 1) - 1) // stride + 1


def request(row):
    """f32 in NCHW, 16-bit types in NHWC: as frameworks run them on GPUs with tensor cores."""
    groups = int(row["groups"])
    order = "nchw" if row["dtype"] == "f32" else "nhwc"
    x = "x".join(row[k] for k in ("N", "C", "H", "W"))
    w = f"{row['K']}x{int(row['C']) // groups}x{row['R']}x{row['S']}"
    dy = f"{row['N']}x{row['K']}x{outputs(row, 'H', 'R', 'h')}x{outputs(row, 'W', 'S', 'w')}"
    extents = {"x": x, "dx": x, "w": w, "dw": w, "dy": dy}
    operation, operands = OPERATIONS[row["direction"]]
    fields = [
        operation,
        *(f"{name}={row['dtype']}:{extents[name]}:{order}" for name in operands),
        f"pad={row['pad_h']},{row['pad_w']}",
        f"stride={row['stride_h']},{row['stride_w']}",
        f"dilation={row['dil_h']},{row['dil_w']}",
        f"groups={groups}",
    ]
    return " ".join(fields)


def refusal(kiln, line):
    """Why KILN cannot serve the line; empty if it can."""
    result = subprocess.run([kiln, "emit", line], capture_output=True, text=True)
    if result.returncode == 0:
        return ""
    return result.stderr.splitlines()[0].removeprefix("kiln: ") if result.stderr else "refused"


def main():
    suite, kiln = sys.argv[1:]
    with open(suite, newline="") as stream:
        rows = list(csv.DictReader(stream))
    print(f"# The layers of {suite.rsplit('/', 1)[-1]}, in its order. Made by make_requests.py; do not edit.")
    print("# f32 in NCHW, 16-bit types in NHWC. A row that is not covered would stand as a comment with the reason.")
    for row in rows:
        line = request(row)
        why = refusal(kiln, line)
        print(f"# {row['class']}, {row['direction']}, {row['network']} {row['layer']}")
        print(line if not why else f"# not covered: {line}\n#   {why}")


main()
