# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""Usage: read_everything_with_h5py.py FILE EXPECTED

Reads a checkpoint as a user of h5py would, and compares it with what the JSON
file says: bytes of the arrays, groups, the scaler, user data.
"""
import json
import sys

import h5py
import numpy as np

TYPES = {"float16": "<f2", "float32": "<f4", "float64": "<f8"}


def check(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: got {got!r}, expected {expected!r}")


def check_array(what, dataset, dtype, shape, expected):
    raw = bytes.fromhex(expected)
    if dtype == "bfloat16":  # arrives as float32
        codes = np.frombuffer(raw, "<u2") if raw else np.zeros(0, "<u2")
        wide = codes.astype("<u4") << 16
        dtype, raw = "float32", wide.tobytes()
    values = dataset[()]
    check(f"type of {what}", np.asarray(values).dtype, np.dtype(TYPES[dtype]))
    check(f"shape of {what}", list(np.shape(values)), shape)
    check(f"bytes of {what}", np.asarray(values).tobytes(), raw)


def check_parameter(group, update_count, expected):
    name = expected["name"]
    check(f"name of {name}", group.attrs["name"], name)
    check(f"group of {name}", group.attrs["group"], expected["group"])
    check(f"update_count of {name}", int(update_count),
          expected["update_count"])
    check(f"arrays of {name}", sorted(group), sorted(expected["arrays"]))
    wide = "float64" if expected["dtype"] == "float64" else "float32"
    for array, content in expected["arrays"].items():
        check_array(f"{name}, {array}", group[array],
                    expected["dtype"] if array == "value" else wide,
                    expected["shape"], content)


def main():
    with open(sys.argv[2], encoding="utf-8") as text:
        expected = json.load(text)
    with h5py.File(sys.argv[1]) as file:
        groups = list(file["parameters"].values())
        check("number of parameters", len(groups), len(expected["parameters"]))
        for group, count, parameter in zip(groups, file["update_counts"],
                                           expected["parameters"]):
            check_parameter(group, count, parameter)
        check("rules", {group.attrs["name"]: group.attrs["rule"]
                        for group in file["optimizer"].values()},
              expected["rules"])
        for key, value in expected["scaler"].items():
            check(f"scaler's {key}", file["scaler"].attrs[key], value)
        user = file["user"]
        check("epoch", int(user["epoch"][()]), 3)
        check("loss", float(user["loss"][()]), 0.25)
        check("note", user["note"].asstr()[()], "größer")
        check("files", list(user["files"].asstr()[:]), ["a", "b"])
        check("image", user["image"][:].tolist(), [[0.5], [-1.0]])


if __name__ == "__main__":
    main()
