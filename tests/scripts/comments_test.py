"""scripts/comments: where a comment begins, and which beginnings it refuses."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1))
LOADER = importlib.machinery.SourceFileLoader("comments", str(PROGRAM))
comments = importlib.util.module_from_spec(importlib.util.spec_from_loader("comments", LOADER))
LOADER.exec_module(comments)


class Refusals(unittest.TestCase):
    """The lines that are refused of a text, by the name of the file that holds it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def lines(self, name, text):
        return [number for number, _ in comments.refused(self.write(name, text))]

    def test_the_four_words_are_refused_and_no_others(self):
        for word in ("Of", "What", "That", "Those"):
            self.assertEqual(self.lines("a.cpp", f"// {word} all threads.\n"), [1], word)
        for word in ("Offset", "Whatever", "of", "Bytes"):
            self.assertEqual(self.lines("a.cpp", f"// {word} all threads.\n"), [], word)

    def test_every_kind_of_comment_is_read(self):
        for text in ("//What", "//! What", "/// What", "int a;  ///< What", "/* What */", "int a; /* What */", "/** What */"):
            self.assertEqual(self.lines("a.h", text + " it is.\n"), [1], text)
        self.assertEqual(self.lines("a.h", "/*\n * What it is.\n */\n"), [2])

    def test_a_sentence_that_runs_on_is_no_beginning(self):
        self.assertEqual(self.lines("a.h", "/// Bytes of the workspace.\n/// What is behind them is free.\n"), [])
        self.assertEqual(self.lines("a.h", "int a;  ///< Bytes.\n        ///< Of each image.\n"), [])
        self.assertEqual(self.lines("a.h", "/* Bytes.\n * Of each image. */\n"), [])

    def test_paragraphs_items_and_remarks_are_beginnings(self):
        self.assertEqual(self.lines("a.h", "// Bytes.\n//\n// What follows.\n"), [3])
        self.assertEqual(self.lines("a.h", "// Bytes:\n// - Of images.\n// 2. Those of y.\n"), [2, 3])
        self.assertEqual(self.lines("a.h", "int a;  // bytes\nint b;  // Of y.\n"), [2])
        self.assertEqual(self.lines("a.h", "int a;  // bytes\n// What follows.\n"), [2])

    def test_strings_are_no_comments(self):
        self.assertEqual(self.lines("a.cpp", 'auto a = "// What", b = \'"\', c = "\\"// Of";\n'), [])
        self.assertEqual(self.lines("a.cpp", "int a = 1'000;  // What it is.\n"), [1])
        self.assertEqual(self.lines("a.sh", 'echo "# What" "${a#Of}"\n'), [])

    def test_scripts_and_build_files_are_read(self):
        for name in ("CMakeLists.txt", "a.cmake", "a.sh", "a.yaml", ".clang-tidy", "a.cmake.in"):
            self.assertEqual(self.lines(name, "x  # What it is.\n"), [1], name)
        self.assertEqual(self.lines("run", "#!/bin/sh\n# What it runs.\n"), [2])
        self.assertEqual(self.lines("notes.md", "# What it runs\n"), [])
        self.assertEqual(self.lines("list.txt", "# What it lists\n"), [])

    def test_docstrings_are_read(self):
        text = '"""What it does."""\n\ndef f():\n    """\n    Of x.\n    """\n\nclass C:\n    """Fine."""\n    a = "What"\n'
        self.assertEqual(self.lines("a.py", text), [1, 4])
        self.assertEqual(self.lines("run", "#!/usr/bin/env python3\n" + '"""What it does."""\n'), [2])

    def test_the_program_names_each_place_and_fails(self):
        bad, good = self.write("bad.cpp", "int a;\n// Of y.\n"), self.write("good.cpp", "// Elements of y.\n")
        done = subprocess.run([PROGRAM, bad, good], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stdout, f"{bad}:2: the comment begins with 'Of': begin with its noun or its verb (Of y.)\n"
        )
        done = subprocess.run([PROGRAM, good], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
