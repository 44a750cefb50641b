# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""The layering check finds each kind of fault, and nothing in clean code."""
import pathlib
import tempfile
import unittest

import layering

TABLE = """# comment
core error.hpp
layout plan.hpp
comm communicator.hpp
kernels rule.hpp
optim *
"""


class LayeringTest(unittest.TestCase):
    def problems(self, files):
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            clean = {f"include/kzero/{name}.hpp": "" for name in
                     ("error", "plan", "communicator", "rule")}
            clean["tests/layering/public_headers.txt"] = TABLE
            for name, text in {**clean, **files}.items():
                (top / name).parent.mkdir(parents=True, exist_ok=True)
                (top / name).write_text(text)
            return layering.Check(top).run()

    def assert_one(self, name, text, expected):
        found = self.problems({name: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_clean_code_passes(self):
        self.assertEqual(self.problems({
            "src/optim/a.cpp": '#include "comm/b.hpp"\n'
                               "#include <kzero/error.hpp>\n"
                               "#include <mpi.h>\n"
                               "// MPI_COMM_WORLD, printf( and exit(\n"
                               'const char* text = "abort()";\n'
                               "auto n = std::snprintf(p, s, f);\n",
            "src/io/c.cpp": "#include <hdf5.h>\n",
            "src/tools/d.cpp": 'int main() { std::printf("x"); }\n'}), [])

    def test_upward_and_sideways_includes_are_found(self):
        self.assert_one("src/core/a.cpp", '#include "layout/b.hpp"\n',
                        "src/core/a.cpp:1: core includes layout")
        self.assert_one("src/comm/a.cpp", '\n#include "kernels/b.hpp"\n',
                        "src/comm/a.cpp:2: comm includes kernels")
        self.assert_one("src/kernels/a.cpp", "#include <kzero/plan.hpp>\n",
                        "kernels includes layout")
        self.assert_one("src/storage/a.cpp", "#include <kzero/new.hpp>\n",
                        "storage includes optim")
        self.assert_one("include/kzero/plan.hpp",
                        "#include <kzero/communicator.hpp>\n",
                        "layout includes comm")

    def test_foreign_headers_are_found(self):
        self.assert_one("src/layout/a.cpp", "#include <mpi.h>\n",
                        "layout includes MPI")
        self.assert_one("src/core/a.hpp", "#include <Kokkos_Core.hpp>\n",
                        "core includes Kokkos")
        self.assert_one("src/optim/a.hpp", "#include <hdf5.h>\n",
                        "optim includes HDF5")
        self.assert_one("include/kzero/other.hpp", "#include <mpi.h>\n",
                        "communicator.hpp alone")

    def test_public_headers_keep_to_public_ones(self):
        self.assert_one("include/kzero/other.hpp", '#include "core/a.hpp"\n',
                        "includes a private one")

    def test_forbidden_calls_are_found(self):
        self.assert_one("src/comm/a.cpp", "f(MPI_COMM_WORLD);\n",
                        "names MPI_COMM_WORLD")
        self.assert_one("src/comm/a.cpp", "\nstd::exit(1);\n", "a.cpp:2: ends")
        self.assert_one("src/comm/a.cpp", 'std::printf("x");\n', "prints")
        self.assert_one("src/comm/a.cpp", "std::cerr << 1;\n", "prints")

    def test_a_file_outside_the_layers_is_found(self):
        self.assert_one("src/misc/a.cpp", "", "in no layer")


if __name__ == "__main__":
    unittest.main()
