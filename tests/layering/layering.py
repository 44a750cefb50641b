# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""Usage: layering.py CHECKOUT

The layers stand in one order and nothing includes upward; layout, comm and
kernels never include each other. core and layout know neither MPI nor Kokkos.
The library prints nothing, ends no process, and names no MPI_COMM_WORLD.
"""
import pathlib
import re
import sys

BELOW = {
    "core": [],
    "layout": ["core"],
    "comm": ["core"],
    "kernels": ["core"],
    "storage": ["core", "layout", "comm", "kernels"],
    "optim": ["core", "layout", "comm", "kernels", "storage"],
    "io": ["core", "layout", "comm", "kernels", "storage", "optim"],
}
EVERYTHING = [*BELOW, "tools", "adapters"]
BELOW["tools"] = EVERYTHING
BELOW["adapters"] = EVERYTHING

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
FOREIGN = {
    "MPI": re.compile(r"^mpi(\.h|cxx\.h)$"),
    "Kokkos": re.compile(r"^(Kokkos_|impl/Kokkos)"),
    "HDF5": re.compile(r"^(hdf5|H5\w*)\.h$"),
}
# The headers of other libraries that a layer may include.
MAY_USE = {
    "core": [],
    "layout": [],
    "comm": ["MPI", "Kokkos"],
    "kernels": ["Kokkos"],
    "storage": ["MPI", "Kokkos"],
    "optim": ["MPI", "Kokkos"],
    "io": ["MPI", "Kokkos", "HDF5"],
    "tools": list(FOREIGN),
    "adapters": list(FOREIGN),
}
FORBIDDEN = {
    "names MPI_COMM_WORLD": re.compile(r"\bMPI_COMM_WORLD\b"),
    "prints": re.compile(
        r"\b(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror)\s*\("
        r"|\b(cout|cerr|clog)\b"),
    "ends the process": re.compile(
        r"\b(exit|_exit|_Exit|quick_exit|abort|terminate|MPI_Abort)\s*\("
        r"|\bassert\s*\("),
}


def without_comments_and_strings(text):
    """The code alone; line breaks stay, so that line numbers stay right."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
        re.DOTALL)

    def blank(match):
        found = match.group(0)
        if found.startswith(("/", '"')):
            return '""' * found.startswith('"') + "\n" * found.count("\n")
        return found

    return token.sub(blank, text)


def read_table(path):
    table = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            layer, header = line.split()
            table[header] = layer
    return table


class Check:
    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.table = read_table(
            self.top / "tests" / "layering" / "public_headers.txt")
        self.problems = []
        self.files = 0

    def layer_of_public(self, header):
        return self.table.get(header, self.table["*"])

    def layer_of_include(self, include):
        """The layer of an included file of ours, None for other people's."""
        first, _, rest = include.partition("/")
        if first == "kzero" and rest:
            return self.layer_of_public(rest)
        return first if rest and first in EVERYTHING else None

    def report(self, path, text, position, problem):
        line = text.count("\n", 0, position) + 1
        self.problems.append(f"{path.relative_to(self.top)}:{line}: {problem}")

    def check_file(self, path, layer, public):
        self.files += 1
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            self.check_include(path, layer, public, text, match)
        if layer == "tools":
            return  # a program may print and exit
        code = without_comments_and_strings(text)
        for problem, pattern in FORBIDDEN.items():
            for match in pattern.finditer(code):
                self.report(path, code, match.start(),
                            f"{problem}: {match.group(0).strip()}")

    def check_include(self, path, layer, public, text, match):
        include = match.group(1)
        if include.startswith("."):
            self.report(path, text, match.start(),
                        f'"{include}": include by the path below src')
        used = self.layer_of_include(include)
        if used is not None:
            if used != layer and used not in BELOW[layer]:
                self.report(path, text, match.start(),
                            f"{layer} includes {used}: {include}")
            if public and not include.startswith("kzero/"):
                self.report(path, text, match.start(),
                            f"a public header includes a private one: {include}")
        for library, pattern in FOREIGN.items():
            if not pattern.search(include):
                continue
            if library not in MAY_USE[layer]:
                self.report(path, text, match.start(),
                            f"{layer} includes {library}: {include}")
            elif public and library == "HDF5":
                self.report(path, text, match.start(),
                            f"a public header includes HDF5: {include}")
            elif public and library == "MPI" and layer != "comm":
                self.report(path, text, match.start(),
                            "mpi.h stands in communicator.hpp alone")

    def run(self):
        include = self.top / "include" / "kzero"
        for header in self.table:
            if header not in ("*", "config.hpp") and not (
                    include / header).exists():
                self.problems.append(
                    f"tests/layering/public_headers.txt: no {header}")
        for path in sorted(include.rglob("*.hpp")):
            name = path.relative_to(include).as_posix()
            self.check_file(path, self.layer_of_public(name), public=True)
        source = self.top / "src"
        for path in sorted(source.rglob("*")):
            if path.suffix not in (".cpp", ".hpp", ".h", ".cu", ".cuh"):
                continue
            layer = path.relative_to(source).parts[0]
            if layer not in BELOW:
                self.problems.append(
                    f"{path.relative_to(self.top)}: in no layer")
                continue
            self.check_file(path, layer, public=False)
        return self.problems


def main():
    check = Check(sys.argv[1])
    problems = check.run()
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{check.files} files, {len(problems)} problems")
    if check.files == 0:
        sys.exit("nothing was checked: is this the checkout's folder?")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
