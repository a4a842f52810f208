#!/usr/bin/env python3
"""The C API of operations that no file of capi/operations names, and files that say something wrong.

usage: generate_test.py CC WORK
"""

import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "capi/generate"))

from definitions import number, sentence  # noqa: E402
from family import Family  # noqa: E402
from header import comment, header, with_remarks  # noqa: E402
from source import source  # noqa: E402

CC, WORK = sys.argv.pop(1), Path(sys.argv.pop(1))


def operand(name: str, extents: str, role: str = "input", left_out: str | None = None, optional: bool = False, summary: str = "") -> dict:
    dtypes = ["f32", "f16"]
    return {"name": name, "role": role, "dtypes": dtypes, "extents": extents, "left_out": left_out, "optional": optional, "summary": summary}


def word(name: str, values: str = "") -> dict:
    return {"name": name, "values": values, "default": "", "summary": ""}


MELT = {
    "operation": "melt",
    "summary": "x as it is when it is warm",
    "result": "y",
    "operands": [
        operand("x", "N C H W"),
        operand("heat", "C", left_out="it is 1", optional=True),
        operand("bias", "C", optional=True, summary="read with epilogue=bias"),
        operand("y", "as x", "output", "dtype and layout of x"),
    ],
    "attributes": [
        {"name": "mode", "default": "hot", "words": ["cold", "hot"], "summary": "how warm"},
        {"name": "pad", "default": "0", "words": [], "summary": "zeros around x"},
        {"name": "axis", "default": "1", "words": [], "summary": "the dimension that melts"},
    ],
    "numbers": [{"name": "slope", "default": 0.0001, "summary": "how steep, above 0"}],
    "integers": [{"name": "seed", "default": 0, "summary": "the key of the random sequence"}],
    "words": [word("alpha"), word("beta"), word("tf32"), word("epilogue", "user:NAME")],
}
PLAIN = MELT | {"operation": "plain", "attributes": [], "numbers": [], "integers": [], "operands": [MELT["operands"][0], MELT["operands"][-1]]}


class Words(unittest.TestCase):
    def test_numbers_are_those_of_c(self):
        for value, text in ((0.0, "0"), (-2.0, "-2"), (0.5, "0.5f"), (1e-3, "0.001f"), (0.00099, "9.9e-4f"), (-1e-5, "-1e-5f")):
            self.assertEqual(number(value), text)

    def test_sentences_begin_with_capitals_or_names(self):
        for text, wanted in (("", ""), ("how warm", "How warm."), ("a weight.", "A weight."), ("x, y", "x, y."), ("x's extents", "x's extents.")):
            self.assertEqual(sentence(text), wanted)


class Lines(unittest.TestCase):
    def test_have_120_characters_at_most(self):
        for indent in ("", "  "):
            lines = comment("a " * 300, indent).splitlines()
            self.assertIn(max(map(len, lines)), (119, 120))
            self.assertTrue(all(line.startswith(indent) for line in lines))

    def test_hold_their_remark_where_there_is_room(self):
        fitting = "b" * (120 - len("  int a; /*  */"))
        self.assertEqual(with_remarks([("  int a;", fitting)]), f"  int a; /* {fitting} */")
        self.assertEqual(with_remarks([("  int a;", fitting + "b")]), f"  /* {fitting}b */\n  int a;")


class ByRule(unittest.TestCase):
    def setUp(self):
        self.header = header(Family.by_rule("melt", {"melt": MELT}), "Made by a test.")

    def test_compiles_without_padding(self):
        for name, text in (("melt", self.header), ("plain", header(Family.by_rule("plain", {"plain": PLAIN}), ""))):
            path = WORK / f"{name}.h"
            path.write_text(text)
            strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wpadded", "-Werror", "-fsyntax-only"]
            subprocess.run([CC, *strict, f"-I{ROOT / 'include'}", "-include", str(path), "-xc", "/dev/null"], check=True)

    def test_has_the_fields_of_the_definition_by_their_width(self):
        body = self.header[self.header.index("typedef struct") : self.header.index("} kiln_melt_options;")]
        fields = [line.split(";")[0].split()[-1] for line in body.splitlines()[1:]]
        narrow = ["size", "mode", "slope", "alpha", "beta", "tf32", "dynamic_batch", "reserved"]
        wide = ["pad_begin[KILN_MAX_SPATIAL]", "pad_end[KILN_MAX_SPATIAL]", "axis", "seed", "heat", "epilogue"]
        self.assertEqual(fields, narrow + wide)

    def test_has_the_defaults_of_the_definition(self):
        defaults = [line for line in self.header.splitlines() if line.startswith("options.")]
        wanted = ["size = (uint32_t)sizeof options", "mode = KILN_MELT_HOT", "slope = 1e-4f", "alpha = 1", "axis = 1"]
        self.assertEqual(defaults, [f"options.{each};" for each in wanted])

    def test_says_what_the_definition_says(self):
        for text in (
            "KILN_MELT_COLD = 0,",
            "/* Default KILN_MELT_HOT. */",
            "/* How steep, above 0. Default 0.0001. */",
            "/* C. Default NULL: it is 1. */",
            "/* User code only. Default NULL: none. */",
            "y = epilogue(alpha * melt(x) + beta * y)",
            "x: N C H W   y: as x. Types: x, heat, bias, y: f32, f16.",
        ):
            self.assertIn(text, self.header)

    def test_calls_the_function_of_its_name_with_its_tensors(self):
        text = source(Family.by_rule("melt", {"melt": MELT}), "", False)
        for part in (
            'kiln::melt(*context->context, of_x, tensor_of(y, function, "y"), options_of(given, of_x.rank(), function), stream);',
            "set_window(given, rank, options);",
            'options.heat = optional_of(given.heat, function, "heat");',
            'options.arithmetic.tf32 = flag(given.tf32, function, "tf32");',
            '"use KILN_MELT_COLD or KILN_MELT_HOT"',
        ):
            self.assertIn(part, text)


class Files(unittest.TestCase):
    def read(self, text: str) -> Family:
        return Family("melt", f"Melting\noperations melt\n\n{text}", {"melt": MELT}, {})

    def test_are_refused_where_the_definition_does_not_know_what_they_say(self):
        for text, message in (
            ("options\n  colour\n", "no definition knows the field colour"),
            ("words kiln_melt_colour\n", "no attribute is a word and called colour"),
            ("words kiln_melt_mode\n  red  Warm.\n", "mode is never red"),
            ("words kiln_melt_mode\n  # Colours.\n    red  Warm.\n", "mode is never"),
            ("options\n\nfunction kiln_freeze\n  Freezes.\n", "freeze is no operation"),
            ("options\n\nfunction kiln_melt(x)\n  Melts.\n", "'function kiln_melt(x)' is not NAME (PARAMETER, ...)"),
            ("options\n\nfunction kiln_melt (x, y, options)\n", "kiln_melt has no comment"),
            ("colours red\n", "'colours red' begins with no word that is known"),
        ):
            with self.assertRaises(SystemExit) as refused:
                self.read(text)
            self.assertIn(message, str(refused.exception))

    def test_are_refused_where_they_name_an_operation_that_there_is_not(self):
        with self.assertRaisesRegex(SystemExit, "there is no operation freeze"):
            Family("melt", "Melting\noperations melt freeze\n", {"melt": MELT}, {})

    def test_have_the_last_word_on_names_orders_and_comments(self):
        family = self.read(
            "options\n  alpha -> scale   The scale.\n  heat  -\n  float k = 2 ->\n\n"
            "function kiln_melt_all (x?, y, options) calls melt\n  Melts x,\n  if given.\n"
        )
        text = header(family, "")
        for part in ("float alpha; /* The scale. */", "const kiln_tensor* heat;\n", "options.k = 2;", "/* Melts x, if given. */"):
            self.assertIn(part, text)
        text = source(family, "", True)
        for part in ("options.scale = given.alpha;", '#include "melt.h"', "if (x == nullptr) {\nkiln::melt(*context->context, tensor_of(y"):
            self.assertIn(part, text)
        self.assertNotIn("options.k", text)


if __name__ == "__main__":
    unittest.main()
