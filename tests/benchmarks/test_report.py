# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""benchmarks/report.py on a sample, and what scripts/bench says to wrong calls.

Usage: test_report.py <checkout>
"""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

top = pathlib.Path(sys.argv.pop())
sys.path.insert(0, str(top / "benchmarks"))
import report  # noqa: E402

SAMPLE = """\
{"case":"C1","what":"MPI / library","ratio":4.5,"spread":0.25,"goal":"at_least","target":4.0,"met":true}
{"case":"C3","what":"barrier & more","ratio":2.5,"spread":0.1,"goal":"at_most","target":1.0,"met":false}
{"case":"S1","what":"<PyTorch>","absent":"not installed"}
"""


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.results = pathlib.Path(self.folder.name) / "results"

    def run_on(self, lines, *arguments):
        self.results.write_text(lines)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = report.main([str(self.results), *arguments])
        return code, out.getvalue(), err.getvalue()

    def test_is_an_aligned_table(self):
        code, out, _ = self.run_on(SAMPLE)
        self.assertEqual(code, 0)
        self.assertEqual(out, (
            "case  what                    ratio  spread    target  met\n"
            "C1    MPI / library           4.500   0.250  >= 4.000  yes\n"
            "C3    barrier & more          2.500   0.100  <= 1.000  no\n"
            "S1    <PyTorch>       not installed\n"))

    def test_says_nothing_of_nothing(self):
        self.assertEqual(self.run_on("\n"), (0, "", ""))

    def test_draws_a_bar_for_each_ratio(self):
        picture = pathlib.Path(self.folder.name) / "picture.svg"
        self.run_on(SAMPLE, "--picture", str(picture))
        drawing = xml.etree.ElementTree.parse(picture)
        name = "{http://www.w3.org/2000/svg}"
        bars = [each for each in drawing.iter(name + "rect")
                if each.get("class") == "bar"]
        self.assertEqual([each.get("fill") for each in bars],
                         [report.MET, report.MISSED])
        texts = [each.text for each in drawing.iter(name + "text")]
        for expected in ("MPI / library", "barrier & more", "<PyTorch>",
                         "not installed", "4.500 (>= 4.000)"):
            self.assertIn(expected, texts)

    def test_bars_stay_on_the_page(self):
        lines = "".join(
            SAMPLE.splitlines(True)[0].replace("4.5", ratio)
            for ratio in ("0.0", "1e-9", "1e9", "null", "NaN"))
        drawing = xml.etree.ElementTree.fromstring(
            report.picture(report.read(lines.splitlines())))
        for each in drawing.iter("{http://www.w3.org/2000/svg}rect"):
            begin = float(each.get("x", 0))
            self.assertGreaterEqual(begin, 0)
            self.assertLessEqual(begin + float(each.get("width")),
                                 float(drawing.get("width")))

    def test_limit_is_how_far_a_ratio_may_miss(self):
        self.assertEqual(self.run_on(SAMPLE, "--limit", "3")[0], 0)
        code, _, err = self.run_on(SAMPLE, "--limit", "2")
        self.assertEqual(code, 1)
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("C3 is more than 2 times off its target", err)
        lost = SAMPLE.replace("4.5", "null")
        self.assertEqual(self.run_on(lost, "--limit", "3")[0], 1)

    def test_limit_does_not_judge_what_is_too_noisy(self):
        line = ('{"case":"S1","what":"step, 8 ranks, 2 Mi: %s / library",'
                '"ratio":0.01,"spread":1,"goal":"at_least","target":1}\n')
        code, _, err = self.run_on(line % "loop over the bytes", "--limit", "2")
        self.assertEqual(code, 0)
        self.assertIn("not judged: S1 step, 8 ranks", err)
        code, _, err = self.run_on(line % "from MPI calls", "--limit", "2")
        self.assertEqual(code, 1)
        self.assertNotIn("not judged", err)

    def test_best_of_what_was_measured_again_counts(self):
        line = ('{"case":"K1","what":"loop / AdamW (%s GB/s)","ratio":%s,'
                '"spread":0,"goal":"at_least","target":1}\n')
        code, out, _ = self.run_on(
            line % (10, "0.1") + line % ("20.5", "0.9") + line % (7, "null"),
            "--limit", "2")
        self.assertEqual(code, 0)
        self.assertEqual(out.count("\n"), 2)
        self.assertIn("loop / AdamW (20.5 GB/s)  0.900", out)

    def test_refuses_what_is_no_result(self):
        for lines, why in (("x\n", "line 1 is no JSON object"),
                           ("\n[]\n", "line 2 is no JSON object"),
                           ('{"case":"C1"}\n', "lacks goal, ratio")):
            code, out, err = self.run_on(lines)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(why, err)
        self.assertEqual(
            self.run_on(SAMPLE, "--picture", "/nowhere/picture")[0], 2)


class Script(unittest.TestCase):
    def run_with(self, *arguments):
        return subprocess.run(
            [top / "scripts" / "bench", *arguments], timeout=60,
            stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def test_help_names_every_option(self):
        done = self.run_with("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for option in ("--only", "--short", "--json", "--picture", "--backend",
                       "--rounds", "--program"):
            self.assertIn(option, done.stdout)

    def test_wrong_calls_say_what_to_do(self):
        for arguments, why in (
                (["--fast"], "unknown option --fast"),
                (["--only"], "--only needs the name of a case: K1"),
                (["--only", "C9"], "there is no case C9: choose from K1"),
                (["--rounds"], "--rounds needs a number"),
                (["--json", "/nowhere/file"], "cannot write /nowhere/file"),
                (["--program", "/nowhere/file"], "is no program")):
            done = self.run_with(*arguments)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("error: ", done.stderr)
            self.assertIn(why, done.stderr)

    def test_a_program_that_fails_is_an_error(self):
        done = self.run_with("--program", "/bin/false", "--only", "C2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: C2 on 2 ranks ended with exit code", done.stderr)


if __name__ == "__main__":
    unittest.main()
