# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""Usage: shared_symbols.py NM INSTRUCTION_SET OBJECTS

Fails when an object compiled for an instruction set defines a weak symbol whose
name does not carry that set's name: the linker may keep that copy for everyone,
and the program then dies on an older processor.
"""
import subprocess
import sys


def main():
    nm, instruction_set, objects = sys.argv[1:]
    lines = subprocess.run(
        [nm, "--demangle", "--defined-only", *objects.split(";")],
        check=True, capture_output=True, text=True).stdout.splitlines()
    symbols = [line.split(maxsplit=2) for line in lines]
    symbols = [symbol for symbol in symbols if len(symbol) == 3]
    if not symbols:
        sys.exit(f"no symbols in {objects}")
    shared = [name for _, kind, name in symbols
              if kind in "WwVvu" and instruction_set not in name]
    for name in shared:
        print(f"{name}: a shared symbol in the {instruction_set} kernels; "
              "inline it always or name it after the set", file=sys.stderr)
    sys.exit(1 if shared else 0)


if __name__ == "__main__":
    main()
