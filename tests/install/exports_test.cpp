// Parts of an installation, and the exports of its library.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "exported_symbols.h"
#include "installation.h"

namespace kiln::install::exports_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Every word of the headers below `folder`.
std::set<std::string> words_of_headers(const fs::path& folder) {
  std::set<std::string> words;
  const std::regex word("[A-Za-z_][A-Za-z_0-9]*");
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path());
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    for (std::sregex_iterator it(text.begin(), text.end(), word); it != std::sregex_iterator(); ++it) {
      words.insert(it->str());
    }
  }
  return words;
}

// The qualified name in a demangled symbol, as its parts: "kiln::Plan::run(void*, ...) const" -> kiln, Plan, run, and
// "typeinfo for kiln::Error" -> kiln, Error.
std::vector<std::string> parts_of_name(const std::string& symbol) {
  std::string name = symbol.substr(0, symbol.find_first_of("([@<"));
  for (const std::string_view what : {"typeinfo for ", "vtable for "}) {
    if (name.starts_with(what)) name.erase(0, what.size());
  }
  std::vector<std::string> parts;
  const std::regex part("~?[A-Za-z_][A-Za-z_0-9]*");
  for (std::sregex_iterator it(name.begin(), name.end(), part); it != std::sregex_iterator(); ++it) {
    parts.push_back(it->str()[0] == '~' ? it->str().substr(1) : it->str());
  }
  return parts;
}

// Expects that a library of Kiln exports `some`, and nothing but what public headers declare.
void expect_declared(const fs::path& library, const std::set<std::string>& declared,
                     const std::vector<std::string>& some) {
  const std::vector<std::string> symbols = exported_symbols(library.string());
  for (const std::string& name : some) EXPECT_THAT(symbols, Contains(StartsWith(name)));
  for (const std::string& symbol : symbols) {
    const std::vector<std::string> parts = parts_of_name(symbol);
    ASSERT_FALSE(parts.empty()) << symbol;
    const bool is_c = parts.size() == 1 && parts[0].starts_with("kiln_");
    EXPECT_TRUE(is_c || parts[0] == "kiln") << symbol << " is neither of the C nor of the C++ API";
    EXPECT_THAT(symbol, HasSubstr(is_c ? "@@KILN_0." : "@@KILN_CXX_"));
    EXPECT_THAT(parts, Not(Contains("Impl"))) << symbol;
    for (const std::string& part : parts) EXPECT_THAT(declared, Contains(part)) << symbol << " is in no public header";
  }
}

TEST_F(Installed, LibrariesExportWhatThePublicHeadersDeclareAndNothingElse) {
  const std::set<std::string> declared = words_of_headers(prefix() / "include");
  expect_declared(libraries() / "libkiln.so", declared,
                  {"kiln::conv_forward(", "kiln::Context::plan(", "kiln::Plan::variant[", "kiln::Error::Error(",
                   "typeinfo for kiln::Error@", "kiln::operator+(kiln::Epilogue", "kiln::Request::parse(",
                   "kiln::version(", "kiln_conv_forward@@KILN_0.1", "kiln_version@@KILN_0.1"});
  expect_declared(libraries() / "libkiln_model.so", declared,
                  {"kiln::Model::Model(", "kiln::Model::run(", "kiln_model_run@@KILN_0.1"});
}

// A function that joins the node of a released version would be missed at the call, not when a program starts.
TEST_F(Installed, CFunctionsAreExportedByTheListOfTheirVersion) {
  const auto write = [&](const std::string& headers) {
    std::ofstream(work() / "write.cmake") << "cmake_minimum_required(VERSION 3.24)\nset(PROJECT_VERSION_MAJOR 0)\n"
                                          << "set(PROJECT_VERSION_MINOR 1)\ninclude(" KILN_PACKAGING "/exports.cmake)\n"
                                          << "file(GLOB headers " << headers << ")\nkiln_write_version_script("
                                          << (work() / "a.map").string() << " kiln ${headers})\n";
    return run(std::string(KILN_CMAKE) + " -P " + (work() / "write.cmake").string());
  };
  const std::string headers = (prefix() / "include/kiln/c/[!m]*.h").string();  // those of models have another library
  ASSERT_EQ(write(headers).exit_code, 0);
  const std::string script = text_of(work() / "a.map");
  EXPECT_THAT(script, StartsWith("KILN_0.1 {\n  global:\n    kiln_activation_backward;\n"));
  EXPECT_THAT(script.substr(0, script.find('}')), Not(HasSubstr("kiln_*")));
  fs::create_directories(work() / "kiln/c");
  std::ofstream(work() / "kiln/c/new.h") << "KILN_API const char* kiln_new(const char* text,\n  int n);\n";
  const Outcome added = write(headers + " " + (work() / "kiln/c/new.h").string());
  EXPECT_NE(added.exit_code, 0);
  EXPECT_THAT(added.text, HasSubstr("kiln_new is declared by a header of the C API"));
}

// State that a process must have once (devices, contexts, tuning, the emulated device, the C API's last error) is
// libkiln's alone, and it stands alone: ONNX is the other library's affair.
TEST_F(Installed, LibraryOfModelsHasNoSecondCopyOfWhatKeepsState) {
  const Outcome needed = run("readelf -d " + (libraries() / "libkiln_model.so").string());
  EXPECT_THAT(needed.text, HasSubstr("[libkiln.so."));
  EXPECT_THAT(needed.text, HasSubstr("[libonnx.so."));
  const Outcome alone = run("readelf -d " + (libraries() / "libkiln.so").string());
  EXPECT_THAT(alone.text, Not(HasSubstr("onnx")));
  EXPECT_THAT(alone.text, Not(HasSubstr("protobuf")));
  const Outcome own = run("nm --demangle --defined-only " + (libraries() / "libkiln_model.so").string());
  EXPECT_EQ(own.exit_code, 0) << own.text;
  EXPECT_THAT(own.text, HasSubstr(" kiln::Model::run("));
  for (const char* state : {" kiln::Context::", " kiln::Plan::", " kiln::DeviceMemory::", " kiln::Environment::",
                            " kiln::Driver::", " kiln_last_error"}) {
    EXPECT_THAT(own.text, Not(HasSubstr(state)));
  }
}

TEST_F(Installed, EmulatorExportsTheDriverApiAndItsExtensionsAlone) {
  for (const std::string& symbol : exported_symbols((libraries() / "libkiln_emulator.so").string())) {
    EXPECT_TRUE(symbol.starts_with("cu") || symbol.starts_with("kiln_emulator_")) << symbol;
  }
}

TEST_F(Installed, LibraryHasAFewMegabytesStripped) {
  const fs::path stripped = work() / "libkiln.stripped";
  ASSERT_EQ(run("strip -o " + stripped.string() + " " + (libraries() / "libkiln.so").string()).exit_code, 0);
  EXPECT_LE(fs::file_size(stripped), 5'500'000u);
}

TEST_F(Installed, LibraryIsNamedByItsMajorVersion) {
  const std::string version = KILN_VERSION;
  const std::string soname = "libkiln.so." + version.substr(0, version.find('.'));
  EXPECT_THAT(run("readelf -d " + (libraries() / "libkiln.so").string()).text, HasSubstr("soname: [" + soname + "]"));
  EXPECT_EQ(fs::read_symlink(libraries() / soname), "libkiln.so." + version);
}

// The headers of the C++ API, as programs include them: "kiln/conv.h".
std::vector<std::string> headers_of_cpp(const fs::path& include) {
  std::vector<std::string> headers;
  for (const auto& entry : fs::directory_iterator(include / "kiln")) {
    const std::string name = entry.path().filename();
    const bool has_a_library_of_its_own = name == "model.h";
    if (entry.is_regular_file() && name.ends_with(".h") && name != "kiln.h" && !has_a_library_of_its_own) {
      headers.push_back("kiln/" + name);
    }
  }
  return headers;
}

TEST_F(Installed, OneHeaderHasAllOfTheCppApi) {
  const std::string all = text_of(prefix() / "include" / "kiln" / "kiln.hpp");
  const std::vector<std::string> headers = headers_of_cpp(prefix() / "include");
  EXPECT_GE(headers.size(), 15u);
  for (const std::string& header : headers) EXPECT_THAT(all, HasSubstr("#include \"" + header + "\"\n"));
}

TEST_F(Installed, HeadersSayWhatTheirFunctionsThrow) {
  for (const std::string& header : headers_of_cpp(prefix() / "include")) {
    EXPECT_THAT(text_of(prefix() / "include" / header), testing::ContainsRegex("[Tt]hrow")) << header;
  }
}

// A page that is read where it was installed leads nowhere else.
TEST_F(Installed, LinksOfThePagesLeadToWhatIsInstalled) {
  const fs::path pages = prefix() / KILN_DOCDIR;
  const std::regex link(R"(\]\(([^)# ]+)(#[^)]*)?\))");
  size_t links = 0;
  for (const auto& entry : fs::recursive_directory_iterator(pages)) {
    if (entry.path().extension() != ".md") continue;
    const std::string text = text_of(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
      const std::string target = (*it)[1];
      if (target.starts_with("http")) continue;
      ++links;
      EXPECT_TRUE(fs::exists(entry.path().parent_path() / target)) << entry.path() << " links to " << target;
    }
  }
  EXPECT_GE(links, 40u);
}

TEST_F(Installed, PublicHeadersNeedNothingButThemselves) {
  std::ostringstream all;
  size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(prefix() / "include")) {
    if (!entry.is_regular_file()) continue;
    all << "#include <" << entry.path().lexically_relative(prefix() / "include").string() << ">\n";
    ++count;
  }
  EXPECT_GE(count, 15u);
  const fs::path source = work() / "all_headers.cpp";
  std::ofstream(source) << all.str();
  const Outcome compiled =
      run(std::string(KILN_CXX) + " -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I " +
          (prefix() / "include").string() + " " + source.string());
  EXPECT_EQ(compiled.exit_code, 0) << compiled.text;
}

TEST_F(Installed, NothingNamesTheTreeThatItWasBuiltIn) {
  const Outcome found = run("grep -rlF " + fs::path(KILN_BUILD_DIR).string() + " " + prefix().string());
  EXPECT_EQ(found.text, "") << "these files hold the path of the build folder";
}

}  // namespace
}  // namespace kiln::install::exports_test
