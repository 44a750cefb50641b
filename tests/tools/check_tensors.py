# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""Usage: check_tensors.py WHAT FILE...

Reads what kzero convert has written, and writes what it reads, knowing nothing
of kzero.
"""
import json
import struct
import sys

import h5py
import numpy as np

try:
    import safetensors
except ImportError:
    safetensors = None


def check(what, holds):
    if not holds:
        sys.exit(f"check_tensors.py: {what}")


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def bfloat16_bits(values):
    """h5py shows bfloat16 as float32: its upper half is the number."""
    return (np.asarray(values).view(np.uint32) >> 16).astype(np.uint16)


def read_safetensors(name):
    """By hand: bfloat16 as the 16 bits."""
    types = {"F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8", "I64": "<i8"}
    with open(name, "rb") as file:
        everything = file.read()
    (length,) = struct.unpack("<Q", everything[:8])
    check("the header ends on a multiple of 8", length % 8 == 0)
    header = json.loads(everything[8 : 8 + length])
    data = everything[8 + length :]
    header.pop("__metadata__")
    check("no holes", sum(e["data_offsets"][1] - e["data_offsets"][0] for e in header.values()) == len(data))
    tensors = {}
    for key, entry in header.items():
        begin, end = entry["data_offsets"]
        size = np.dtype(types[entry["dtype"]]).itemsize
        check(f"{key} begins at a multiple of its elements", (8 + length + begin) % size == 0)
        flat = np.frombuffer(data[begin:end], types[entry["dtype"]])
        tensors[key] = flat.reshape(entry["shape"])
    return tensors


def parameters_of(name, array):
    """By name; whether it is bfloat16 in the file."""
    with h5py.File(name) as file:
        for group in file["parameters"].values():
            dataset = group[array] if array in group else group["value"]
            stored = dataset.id.get_type()
            is_bfloat16 = stored.get_size() == 2 and stored.get_fields()[2] == 8
            yield group.attrs["name"], dataset[()], is_bfloat16


def check_values(checkpoint, as_safetensors, as_npz=None, array="value"):
    tensors = read_safetensors(as_safetensors)
    names = set()
    for name, values, is_bfloat16 in parameters_of(checkpoint, array):
        names.add(name)
        values = np.asarray(values)
        expected = np.asarray(bfloat16_bits(values) if is_bfloat16 else values).reshape(values.shape)
        # HDF5 gives every NaN the same bits when it widens them.
        nan = np.isnan(values)
        same = same_bits(tensors[name][~nan], expected[~nan]) and tensors[name].shape == values.shape
        check(f"{name} in safetensors", same)
        if as_npz:
            with np.load(as_npz) as arrays:
                check(f"{name} in npz", arrays[name].dtype == values.dtype and arrays[name].shape == values.shape)
                check(f"{name} has NaN there", np.array_equal(np.isnan(arrays[name]), nan))
                check(f"{name} bits", arrays[name][~nan].tobytes() == values[~nan].tobytes())
    check("all names", names == set(tensors))
    if safetensors is None:
        return
    from safetensors import safe_open

    with safe_open(as_safetensors, framework="numpy") as file:
        check("the package's names", set(file.keys()) == names)
    with open(as_safetensors, "rb") as file:
        for name, tensor in safetensors.deserialize(file.read()):
            check(f"{name} in the package", bytes(tensor["data"]) == tensors[name].tobytes())


written = {
    "matrix": np.arange(6, dtype="<f4").reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(24, dtype="<f8").reshape(2, 3, 4)),
    "big endian": np.arange(5, dtype=">f4"),
    "both": np.asfortranarray(np.arange(6, dtype=">f2").reshape(3, 2)),
    "scalar": np.array(2.5),
    "empty": np.zeros((0, 3), dtype="<f4"),
    "long": np.arange(700000, dtype="<f4"),
    "count": np.array([1, 2, 3]),
    "truth": np.array([True]),
    "records": np.zeros(2, dtype=[("a", "<f4")]),
}


def check_written(checkpoint):
    found = {name: values for name, values, _ in parameters_of(checkpoint, "value")}
    for name, values in written.items():
        if name in ("count", "truth", "records"):
            check(f"no {name}", name not in found)
            continue
        expected = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"))).reshape(values.shape)
        check(name, same_bits(np.asarray(found[name]), expected))


def write_safetensors(name):
    """As the format's own package would: the tensors in any order."""
    header = {
        "a.matrix": {"dtype": "F32", "shape": [2, 2], "data_offsets": [9, 25]},
        "b.half": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]},
        "bytes": {"dtype": "U8", "shape": [3], "data_offsets": [6, 9]},
        "__metadata__": {"format": "pt"},
    }
    text = json.dumps(header).encode()
    half = np.array([0x3F80, 0xC000, 0x3F00], dtype="<u2")
    with open(name, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + half.tobytes() + b"abc")
        file.write(np.arange(4, dtype="<f4").tobytes())


def write_bytes(name):
    text = b'{"x": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}'
    with open(name, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"abc")


what, files = sys.argv[1], sys.argv[2:]
if what == "values":
    check_values(*files)
elif what == "main":
    check_values(*files, array="main")
elif what == "write":
    np.savez(files[0], **written)
    np.savez_compressed(files[1], **written)
elif what == "written":
    check_written(*files)
elif what == "write_safetensors":
    write_safetensors(*files)
elif what == "write_bytes":
    write_bytes(*files)
else:
    sys.exit(__doc__)
