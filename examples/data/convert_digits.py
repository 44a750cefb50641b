#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""Converts the digits from comma separated values to digits.h5.

Each line of the input holds 64 pixels (8x8, rows first, 0..16), then the
digit (0..9). Equal input gives an equal file with the same h5py.

    convert_digits.py digits.csv.gz digits.h5
"""

import argparse
import gzip

import h5py
import numpy

SOURCE = (
    "E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, "
    "1998, UCI Machine Learning Repository"
)
LICENSE = "CC BY 4.0"


def read_rows(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="ascii") as file:
        rows = numpy.loadtxt(file, delimiter=",", ndmin=2)
    if rows.shape[1] != 65:
        raise SystemExit(f"{path}: {rows.shape[1]} columns, expected 65")
    pixels, digits = rows[:, :64], rows[:, 64]
    for name, values, largest in (("pixel", pixels, 16), ("digit", digits, 9)):
        whole = numpy.array_equal(values, numpy.floor(values))
        if not whole or values.min() < 0 or values.max() > largest:
            raise SystemExit(f"{path}: a {name} is not one of 0..{largest}")
    return pixels.astype(numpy.uint8), digits.astype(numpy.uint8)


def write_file(path, pixels, digits):
    packed = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
    # No times in the file: the same bytes from every run.
    with h5py.File(path, "w", libver=("earliest", "v110")) as file:
        file.attrs["source"] = SOURCE
        file.attrs["license"] = LICENSE
        images = file.create_dataset(
            "images", data=pixels, track_times=False, **packed)
        images.attrs["description"] = "8x8 pixels, rows first, 0 to 16"
        labels = file.create_dataset(
            "labels", data=digits, track_times=False, **packed)
        labels.attrs["description"] = "the digit that is drawn, 0 to 9"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", help="digits.csv or digits.csv.gz")
    parser.add_argument("hdf5", help="file to write")
    arguments = parser.parse_args()
    pixels, digits = read_rows(arguments.csv)
    write_file(arguments.hdf5, pixels, digits)
    print(f"{arguments.hdf5}: {len(digits)} images")


if __name__ == "__main__":
    main()
