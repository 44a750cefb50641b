# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""Usage: read_checkpoint.py FILE

A checkpoint as Python data, by h5py alone: bfloat16 arrives as float32, exactly.
"""
import sys

import h5py


def read_checkpoint(path):
    """The steps made, and for each parameter its arrays and its update count."""
    with h5py.File(path, "r") as file:
        counts = file["update_counts"][:]
        parameters = {}
        for group, count in zip(file["parameters"].values(), counts):
            arrays = {name: array[()] for name, array in group.items()}
            parameters[group.attrs["name"]] = {"group": group.attrs["group"],
                                               "update_count": int(count),
                                               **arrays}
        return int(file.attrs["step"]), parameters


if __name__ == "__main__":
    steps, model = read_checkpoint(sys.argv[1])
    print(f"{steps} steps")
    for name, parameter in model.items():
        value = parameter["value"]
        print(f"{name}: {value.dtype} {value.shape}, "
              f"updated {parameter['update_count']} times, "
              f"state {sorted(set(parameter) - {'value', 'group', 'update_count'})}")
