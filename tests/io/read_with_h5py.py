# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""Usage: read_with_h5py.py FILE

Reads the file of sample_file.hpp as a user of h5py would, knowing nothing of
kzero.
"""
import sys

import h5py
import numpy as np


def check(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: got {got!r}, expected {expected!r}")


def check_bfloat16(dataset):
    """All codes, as exact float32 values."""
    values = dataset[:]
    check("bfloat16 is read as", values.dtype, np.dtype("float32"))
    codes = np.arange(65536, dtype=np.uint32).reshape(256, 256)
    expected = (codes << 16).view(np.float32)
    nan = np.isnan(expected)
    check("NaN places", np.array_equal(np.isnan(values), nan), True)
    same = values.view(np.uint32)[~nan] == expected.view(np.uint32)[~nan]
    check("equal bits", bool(same.all()), True)


def main():
    with h5py.File(sys.argv[1]) as file:
        check("format", file.attrs["format"], "kzero")
        check("format_version", list(file.attrs["format_version"]), [2, 0])
        check("step", int(file.attrs["step"]), 41)
        check("world_size", int(file.attrs["world_size"]), 3)
        check("created", file.attrs["created"], "2026-01-02T03:04:05Z")

        parameters = file["parameters"]
        check("order", [group.attrs["name"] for group in parameters.values()],
              ["z/first", "half", "empty", "a scalar", "größe λ", "n" * 300])
        check("links", list(parameters)[0], "z%2Ffirst")
        first = parameters["z%2Ffirst"]
        check("arrays", list(first), ["value", "main", "exp_avg", "exp_avg_sq"])
        check("group", first.attrs["group"], "default")
        check("update_counts", file["update_counts"][:].tolist(),
              [41, 41, 40, 40, 40, 2])
        check_bfloat16(first["value"])

        half = parameters["half/value"][:]
        check("float16", half.dtype, np.dtype("float16"))
        check("codes", np.array_equal(half.view(np.uint16), np.arange(65536)),
              True)
        check("empty", parameters["empty/value"].shape, (0, 3))
        check("scalar", parameters["a scalar/value"].shape, ())
        check("scalar", float(parameters["a scalar/value"][()]), 0.0)
        cube = parameters["größe λ/value"][:]
        check("C order", np.array_equal(
            cube, np.arange(30, dtype=np.float32).reshape(2, 3, 5) / 8), True)

        rule = file["optimizer/default"]
        check("rule", rule.attrs["rule"], "adamw")
        check("beta1", float(rule.attrs["beta1"]), 0.9)
        check("group name", file["optimizer/no%2Fdecay"].attrs["name"],
              "no/decay")

        scaler = dict(file["scaler"].attrs)
        check("scaler", scaler,
              {"kind": "dynamic", "scale": 4096.0, "good_steps": 17,
               "hysteresis_left": 2, "growth": 2.0, "backoff": 0.5,
               "growth_interval": 1000, "hysteresis": 2, "minimum": 1.0})

        user = file["user"]
        check("epoch", int(user["epoch"][()]), 5)
        check("loss", float(user["loss"][()]), 0.25)
        check("note", user["note"].asstr()[()], "größer")
        check("files", list(user["files"].asstr()[:]), ["a", "b"])
        check("curve", user["curve"][:].tolist(), [[0.5], [1.5]])


if __name__ == "__main__":
    main()
