#!/usr/bin/env python3
"""Writes the times of a tuning database that a GPU measured as a table of text: what lies in this folder.

    table.py DATABASE... --about "driver 580.159.04, Kiln 5bcac7c8" > h100-2026-11-26.tsv

A variant in several databases has the time of the last one that names it.
"""
import argparse
import datetime
import sqlite3
import sys

ROWS = """
  SELECT requests.key, algorithms.name, records.config, records.seconds, records.spread, length(records.samples) / 8,
         records.created, records.driver, records.nvrtc, records.kiln, devices.device, records.source_digest
  FROM records
  JOIN devices ON devices.id = records.device_id
  JOIN requests ON requests.id = records.request_id
  JOIN algorithms ON algorithms.id = records.algorithm_id
  WHERE records.kind = 'measured' AND records.outcome IN ('timed', 'rejected_early') AND devices.emulated = 0
  ORDER BY records.id
"""


def one(values, what):
    values = sorted(set(values))
    if len(values) != 1:
        sys.exit(f"table.py: the times are of {len(values)} {what}: {values}")
    return values[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("databases", nargs="+")
    parser.add_argument("--device", default="", help="a part of its name, for databases with times of several")
    parser.add_argument("--about", required=True, help="what the databases do not say: the driver's version, the commit")
    options = parser.parse_args()
    rows, calibrations = {}, {}
    for path in options.databases:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            for row in database.execute(ROWS):
                if options.device in row[10]:
                    rows[row[:3]] = row
            calibrations.update(database.execute("SELECT device, figures FROM calibrations"))
    found = list(rows.values())
    device = one((row[10] for row in found), "devices")
    days = sorted({datetime.datetime.fromtimestamp(row[6] / 1000, datetime.timezone.utc).date() for row in found})
    versions = {what: one((row[i] for row in found), what) for i, what in ((7, "CUDA"), (8, "NVRTC"), (9, "Kiln"))}
    print("# Times that `kiln tune` measured on a GPU: medians of samples from a cold L2 (docs/tuning-method.md).")
    print(f"# device {device}")
    print(f"# date {' to '.join(sorted({str(days[0]), str(days[-1])}))}; "
          f"{', '.join(f'{what} {version}' for what, version in versions.items())}; {options.about}")
    if device in calibrations:
        print(f"# calibration {calibrations[device]}")
    print("request\talgorithm\tconfig\tmicroseconds\tspread\tsamples\tsource")
    for request, algorithm, config, seconds, spread, samples, *_, source in found:
        print(f"{request}\t{algorithm}\t{config}\t{seconds * 1e6:.3f}\t{spread * 1e6:.3f}\t{samples}\t{source}")


if __name__ == "__main__":
    main()
