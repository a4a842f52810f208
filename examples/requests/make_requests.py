#!/usr/bin/env python3
"""Writes the requests of a suite of layers: make_requests.py SUITE.csv KILN > SUITE.txt

Each row becomes the request of its direction. What the program KILN cannot parse yet stands as a comment with the reason,
so that the file widens when it is made again after an operation has landed (tests/cli/suite_test.cpp asks for that).
"""
import csv
import subprocess
import sys

OPERATIONS = {"fwd": "conv_forward", "dgrad": "conv_dgrad", "wgrad": "conv_wgrad"}


def request(row):
    """f32 in NCHW, 16-bit types in NHWC: as frameworks run them on GPUs with tensor cores."""
    groups = int(row["groups"])
    order = "nchw" if row["dtype"] == "f32" else "nhwc"
    x = "x".join(row[k] for k in ("N", "C", "H", "W"))
    w = f"{row['K']}x{int(row['C']) // groups}x{row['R']}x{row['S']}"
    fields = [
        OPERATIONS[row["direction"]],
        f"x={row['dtype']}:{x}:{order}",
        f"w={row['dtype']}:{w}:{order}",
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
    print("# f32 in NCHW, 16-bit types in NHWC. A row that is not covered yet stands as a comment with the reason.")
    for row in rows:
        line = request(row)
        why = refusal(kiln, line)
        print(f"# {row['class']}, {row['direction']}, {row['network']} {row['layer']}")
        print(line if not why else f"# not covered: {line}\n#   {why}")


main()
