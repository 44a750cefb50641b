# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""Usage: list_checkpoint.py FILE; see scripts/list-checkpoint."""
import sys

import h5py


def text(value):
    if isinstance(value, bytes):
        value = value.decode()
    one_line = " ".join(str(value).split())
    return one_line if len(one_line) <= 48 else one_line[:45] + "..."


def type_name(dataset):
    """The type in the file: h5py reads a 2-byte float as a wider one."""
    stored = dataset.id.get_type()
    if stored.get_class() == h5py.h5t.FLOAT and stored.get_size() == 2:
        fraction_bits = stored.get_fields()[4]
        return {7: "bfloat16", 10: "float16"}.get(fraction_bits, "16-bit float")
    return "string" if h5py.check_string_dtype(dataset.dtype) else str(
        dataset.dtype)


def first_value(dataset):
    if dataset.shape is None or 0 in dataset.shape:
        return "-"
    if dataset.dtype.kind == "O" and not h5py.check_string_dtype(dataset.dtype):
        return "-"
    return text(dataset[(0,) * dataset.ndim])


def show(name, node):
    if isinstance(node, h5py.Dataset):
        shape = "x".join(map(str, node.shape or ())) or "scalar"
        print(f"/{name:<40} {type_name(node):<10} {shape:<12} "
              f"{first_value(node)}")
    for key, value in node.attrs.items():
        print(f"/{name} @{key} = {text(value)}")


def main():
    with h5py.File(sys.argv[1], "r") as file:
        for key, value in file.attrs.items():
            print(f"/ @{key} = {text(value)}")
        file.visititems(show)


if __name__ == "__main__":
    main()
