"""A process that loads libkiln_model.so has libkiln.so too, and each variable once.

Objects of some rooms are in both libraries. A constant may be there twice, a variable may not: what one library writes,
the other would not read. So every object in writable memory that both define must be declared const.

usage: single_state_test.py ROOT NM LIBKILN LIBKILN_MODEL
"""

import functools
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1])
NM, KILN, KILN_MODEL = sys.argv[2:5]
del sys.argv[1:]

ROOMS = ["base", "generator", "reference", "capi", "runtime", "graph", "frontends", "models", "include"]


def objects_of(library):
    """Demangled names of Kiln's own objects that are not in read-only memory. Tables of classes and guards are not its own."""
    lines = subprocess.run([NM, "--defined-only", "--demangle", library], capture_output=True, text=True, check=True).stdout
    symbols = re.findall(r"^[0-9a-f]+ [bBdDuV] (kiln.*)$", lines, re.MULTILINE)
    return {re.sub(r"\[abi:\w+\]", "", symbol) for symbol in symbols}


@functools.lru_cache(maxsize=None)
def sources():
    files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*")) if file.suffix in (".cpp", ".h")]
    return {file.relative_to(ROOT): file.read_text() for file in files}


def is_constant(declared):
    """`static const std::vector<T*>` and `char* const`, but not `const char*`."""
    text = declared
    while re.search(r"<[^<>]*>", text):
        text = re.sub(r"<[^<>]*>", "", text)
    return re.search(r"\b(const|constexpr)\b", text.rpartition("*")[2]) is not None or "constexpr" in text


def declarations_of(symbol, files):
    """Text before the name in declarations that may be those of the symbol, with the file of each.

    A variable of a function is `static` or `thread_local` in a file with the function's name. Others stand in the first
    column, as all of Kiln is formatted, or are static members.
    """
    # "f(std::vector<int>) const::name" has the scope f.
    scope, _, name = re.sub(r"\([^()]*\)", "", symbol.replace("(anonymous namespace)::", "")).replace(" const", "").rpartition("::")
    function = scope.rpartition("::")[2]
    of_function = ")" in symbol.replace("(anonymous namespace)", "")
    found = []
    for file, text in files.items():
        if name not in text or (of_function and not re.search(rf"\b{function}\(", text)):
            continue
        line = r"\s*(?:static|thread_local)\b.*" if of_function else r"\s*(?:static|inline)\b.*|[a-zA-Z][^()\n]*"
        begin = r"[=;{(,]" if of_function else r"[=;{,]"
        pattern = rf"^({line})\b{name}(?:\[\w*\])* ?{begin}"
        found += [(file, before.strip()) for before in re.findall(pattern, text, re.MULTILINE)]
    used = r"(using|struct|class|enum|namespace)\b|.*\breturn\b"
    return [(file, before) for file, before in found if not re.match(used, before)]


def variables(symbols, files):
    """The symbols that are declared without const, or nowhere, with where they are declared."""
    found = []
    for symbol in sorted(symbols):
        declarations = declarations_of(symbol, files)
        places = [f"{file}: {before} ..." for file, before in declarations if not is_constant(before)]
        if places or not declarations:
            found.append(f"{symbol} ({'; '.join(places) or 'no declaration found'})")
    return found


class TwoLibraries(unittest.TestCase):
    def test_share_no_variable(self):
        shared = objects_of(KILN) & objects_of(KILN_MODEL)
        self.assertTrue(any("operation()::definition" in symbol for symbol in shared), "tables of operations are in both")
        self.assertEqual(variables(shared, sources()), [],
                         "in libkiln.so and libkiln_model.so: name the source in ALONE of its room's CMakeLists.txt, "
                         "or declare what is constant const")

    def test_the_state_of_the_c_api_is_a_variable_of_libkiln(self):
        symbol = "kiln::capi::(anonymous namespace)::last_error()::error"
        self.assertIn(symbol, objects_of(KILN))
        self.assertEqual(variables([symbol], sources()),
                         [f"{symbol} (capi/last_error.cpp: thread_local LastError ...)"])


class Declarations(unittest.TestCase):
    """Forms of variables and constants."""

    def test_variables(self):
        for text in ("static int n = 0;", "static thread_local std::string n;", "std::atomic<const int*> n{nullptr};",
                     "inline int n = 0;", "  static const char* n = \"\";", "static Members& n = *new Members;"):
            with self.subTest(text):
                self.assertEqual(len(variables(["kiln::n"], {"a.cpp": f"{text}\n"})), 1)

    def test_constants(self):
        for text in ("static const int n = f();", "constexpr std::array n = {1};", "inline constexpr const char* n = \"\";",
                     "  static const std::vector<int*> n;", "static const T m = f(1), n = f(2);", "const char* const n[] = {};"):
            with self.subTest(text):
                self.assertEqual(variables(["kiln::n"], {"a.cpp": f"{text}\n"}), [])

    def test_a_variable_of_a_function_is_looked_for_where_the_function_is(self):
        files = {"a.cpp": "int f(int) {\n  static const int n = 1;\n}\n", "b.cpp": "int g() {\n  static int n = 1;\n}\n"}
        self.assertEqual(variables(["kiln::f(int)::n"], files), [])
        self.assertEqual(variables(["kiln::g()::n"], files), ["kiln::g()::n (b.cpp: static int ...)"])
        self.assertEqual(variables(["kiln::h()::n"], files), ["kiln::h()::n (no declaration found)"])


if __name__ == "__main__":
    unittest.main()
