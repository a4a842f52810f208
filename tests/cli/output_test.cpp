// Output of the program: JSON, tables on terminals, help; and its messages where that cannot be written.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "onnx_model.h"
#include "program.h"

namespace kiln::cli::output_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const char* const softmax = "softmax_forward x=f32:3x100";

std::string text_of(const std::string& file) {
  std::ifstream stream(std::string(KILN_SOURCE_DIR) + "/" + file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

size_t longest_line(const std::string& text) {
  size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    longest = std::max(longest, line.size());
  }
  return longest;
}

class JsonOutput : public ProgramTest {
 protected:
  json parsed(const std::vector<std::string>& arguments, int exit_code = 0) const {
    const Outcome outcome = kiln(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_TRUE(json::accept(outcome.out)) << arguments.front() << "\n" << outcome.out;
    return json::accept(outcome.out) ? json::parse(outcome.out) : json();
  }

  // Every name of an object is said by the page, so that no shape changes without it.
  static void expect_documented(const json& value) {
    static const std::string page = text_of("docs/command-line.md");
    if (value.is_array()) {
      for (const json& each : value) expect_documented(each);
    }
    if (!value.is_object()) return;
    for (const auto& [name, inner] : value.items()) {
      EXPECT_THAT(page, HasSubstr("`" + name + "`"));
      if (name != "algorithms" && name != "outcomes" && name != "drivers") expect_documented(inner);
    }
  }
};

TEST_F(JsonOutput, OfCommandsThatNeedNoDevice) {
  const json emitted = parsed({"emit", softmax, "--json"});
  expect_documented(emitted);
  EXPECT_THAT(std::string(emitted["sources"][0]), HasSubstr("__global__"));
  EXPECT_EQ(emitted["arch"], "sm_90");
  const json devices = parsed({"devices", "--json"});
  expect_documented(devices);
  EXPECT_EQ(devices["devices"].back()["time"], "modelled");
}

TEST_F(JsonOutput, OfEveryCommandOnTunedLayers) {
  const json tuned = parsed({"tune", softmax, "--db", path("a.db"), "--candidates", "2", "--json", "--quiet"});
  expect_documented(tuned);
  EXPECT_EQ(tuned["layers"].size(), 1U);

  const json run = parsed({"run", "--check", softmax, "--db", path("a.db"), "--json"});
  expect_documented(run);
  EXPECT_EQ(run["layers"][0]["right"], true);
  EXPECT_EQ(run["time"], "modelled");

  const json explained = parsed({"explain", softmax, "--db", path("a.db"), "--json"});
  expect_documented(explained);
  EXPECT_EQ(explained["layers"][0]["chosen"]["algorithm"], tuned["layers"][0]["best"]["algorithm"]);
  EXPECT_EQ(explained["layers"][0]["tried"].size(), 2U);
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  environment_["VIRTUAL_ENV"] = std::string(KILN_SOURCE_DIR) + "/build/python";
  expect_documented(parsed({"explain", softmax, "--launches", "--json"}));
  expect_documented(parsed({"devices", "--calibrate", "--card", path("a.card"), "--db", path("c.db"), "--json"}));
  environment_["KILN_EMULATOR_CLOCK"] = "ptx";

  const json verified = parsed({"verify", softmax, "--sample", "1", "--json"});
  expect_documented(verified);
  EXPECT_EQ(verified["agree"], 1);

  const json exported = parsed({"cache", "export", "--db", path("a.db"), path("a.pack"), "--json"});
  expect_documented(exported);
  EXPECT_EQ(exported["records"], 2);
  const json imported = parsed({"cache", "import", "--db", path("b.db"), path("a.pack"), "--json"});
  expect_documented(imported);
  EXPECT_EQ(imported["files"][0]["added"], 2);
  expect_documented(parsed({"cache", "merge", "--db", path("b.db"), path("a.db"), "--json"}));
  const json listed = parsed({"cache", "list", "--db", path("b.db"), "--json"});
  expect_documented(listed);
  EXPECT_EQ(listed["devices"][0]["requests"][0]["candidates"], 2);
  const json counted = parsed({"cache", "stats", path("b.db"), "--json"});
  expect_documented(counted);
  EXPECT_EQ(counted["devices"][0]["records"], 2);
  const json same = parsed({"cache", "diff", path("a.pack"), path("b.db"), "--json"});
  expect_documented(same);
  EXPECT_EQ(same["unchanged"], 1);
  write("empty.pack", "kiln-pack\t1\t0\nend\n");
  const json fresh = parsed({"cache", "diff", path("empty.pack"), path("a.db"), "--json"});
  expect_documented(fresh);
  EXPECT_EQ(fresh["changes"][0]["change"], "added");
  const json again = parsed({"cache", "verify", path("a.pack"), "--sample", "1", "--json"});
  expect_documented(again);
  EXPECT_EQ(again["checked"].size(), 1U);
  const json barred = parsed({"cache", "quarantine", "--db", path("a.db"), "--json"});
  expect_documented(barred);
  EXPECT_EQ(barred["quarantine"], json::array());
  const json gone = parsed({"cache", "prune", "--older-than", "1e-9", "--db", path("b.db"), "--json"});
  expect_documented(gone);
  EXPECT_EQ(gone["records"], 2);

  json bundled =
      parsed({"bundle", softmax, "--arch", "90", "--emulated", "--db", path("a.db"), "-o", path("a.kiln"), "--json"});
  expect_documented(bundled);
  bundled.erase("not_covered");  // of the model, which the file does not keep
  EXPECT_EQ(parsed({"bundle", "--list", path("a.kiln"), "--json"}), bundled);
}

TEST_F(JsonOutput, EveryCommandSaysWhichNodesOfAModelItDoesNotCover) {
  test::OnnxModel model;
  model.input("x", {1, 10}).node("Softmax", {"x"}, {"y"}, {{"axis", int64_t{1}}});
  model.node("NonZero", {"y"}, {"z"});
  model.output("z");
  const std::string file = write("model.onnx", model.bytes());
  const std::string database = path("a.db");
  const std::vector<std::vector<std::string>> commands = {
      {"tune", "--quiet", "--candidates", "1", "--db", database},
      {"explain", "--db", database},
      {"run", "--db", database},
      {"verify", "--sample", "1"},
      {"bundle", "--arch", "90", "--emulated", "-o", path("a.kiln"), "--db", database}};
  for (std::vector<std::string> command : commands) {
    command.push_back(file);
    const Outcome said = kiln(command);
    EXPECT_EQ(said.exit_code, 0) << said.err;
    EXPECT_THAT(said.out, HasSubstr("not covered: 1 x NonZero ('z'): ")) << command[0];
    command.push_back("--json");
    const json nodes = parsed(command)["not_covered"];
    ASSERT_EQ(nodes.size(), 1U) << command[0];
    EXPECT_EQ(nodes[0]["operation"], "NonZero") << command[0];
    EXPECT_EQ(nodes[0]["count"], 1) << command[0];
    EXPECT_EQ(nodes[0]["nodes"], json::array({"z"})) << command[0];
  }
}

TEST_F(JsonOutput, EveryCommandNamesTheNodesOfAModelThatALayerServes) {
  test::OnnxModel model;
  model.input("x", {1, 10}).node("Softmax", {"x"}, {"y"}, {{"axis", int64_t{1}}});
  model.output("y");
  const std::string file = write("model.onnx", model.bytes());
  const auto nodes_of = [&](std::vector<std::string> command, const char* list) {
    command.insert(command.end(), {file, "--json"});
    return parsed(command)[list][0]["nodes"];
  };
  const json softmax_node = json::array({"y"});
  EXPECT_EQ(nodes_of({"tune", "--quiet", "--candidates", "1", "--db", path("a.db")}, "layers"), softmax_node);
  EXPECT_EQ(nodes_of({"explain"}, "layers"), softmax_node);
  EXPECT_EQ(nodes_of({"run"}, "layers"), softmax_node);
  EXPECT_EQ(nodes_of({"verify", "--sample", "1"}, "variants"), softmax_node);
  EXPECT_THAT(kiln({"tune", file, "--quiet", "--candidates", "1", "--db", path("a.db")}).out,
              testing::ContainsRegex("layer +count +[^\n]* nodes\nsoftmax [^\n]* 1 [^\n]*  y\n"));
  EXPECT_THAT(kiln({"run", file}).out,
              testing::ContainsRegex("layer +count +[^\n]* nodes\nsoftmax [^\n]* 1 [^\n]*  y\n"));
  EXPECT_THAT(kiln({"explain", file}).out, HasSubstr("\nnodes: y\n"));
  EXPECT_THAT(kiln({"verify", "--sample", "1", file}).out, testing::ContainsRegex("softmax [^\n]*: y\n"));
  EXPECT_THAT(kiln({"run", "softmax_forward x=f32:1x10"}).out, testing::Not(HasSubstr("nodes")));
}

TEST_F(ProgramTest, TablesFitTheTerminalAndLoseNothing) {
  const std::string request = "conv_forward x=f32:1x8x9x9 w=f32:4x8x3x3 pad=1";
  const Outcome piped = kiln({"explain", request});
  ASSERT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_GT(longest_line(piped.out.substr(piped.out.find("best estimates"))), 80U) << "a pipe gets a line a row";
  const Outcome narrow = kiln_on_terminal(80, {"explain", request});
  EXPECT_EQ(narrow.exit_code, 0);
  const std::string tables = narrow.out.substr(narrow.out.find("best estimates"));
  EXPECT_LE(longest_line(tables), 80U) << tables;
  EXPECT_GT(longest_line(tables), 60U) << "the width there is is used";
  for (const std::string word : {"conv_depthwise", "conv_implicit_gemm", "because", "roofline"}) {
    EXPECT_THAT(tables, HasSubstr(word));
  }
  const Outcome unknown = kiln_on_terminal(0, {"explain", request});
  EXPECT_EQ(unknown.out, narrow.out) << "a terminal without a width has the usual one";
  const Outcome wide = kiln_on_terminal(80, {"explain", request, "--wide"});
  EXPECT_GT(longest_line(wide.out.substr(wide.out.find("best estimates"))), 80U);
}

TEST_F(ProgramTest, TheDeviceLineIsShortAndSaysMoreWhenAsked) {
  const Outcome outcome = kiln({"explain", softmax});
  const std::string first = outcome.out.substr(0, outcome.out.find('\n'));
  EXPECT_THAT(first, HasSubstr("emulated "));
  EXPECT_THAT(first, HasSubstr(", times modelled"));
  EXPECT_LT(first.size(), 60U) << first;
  EXPECT_THAT(kiln({"explain", softmax, "--verbose"}).out, HasSubstr("libkiln_emulator.so"));
}

TEST_F(ProgramTest, AFullDiskUnderTheOutputOfAnyCommandIsSaid) {
  const std::string redirected = "exec '" KILN_PROGRAM "' \"$@\" > /dev/full";
  const std::vector<std::vector<std::string>> lines = {{"emit", softmax},
                                                       {"emit", "conv_forward x=f32:1x8x9x9 w=f32:4x8x3x3"},
                                                       {"devices", "--json"},
                                                       {"help"},
                                                       {"--help"},
                                                       {"man"}};
  for (std::vector<std::string> line : lines) {
    line.insert(line.begin(), {"-c", redirected, "sh"});
    const Outcome outcome = run("/bin/sh", line);
    EXPECT_EQ(outcome.exit_code, 4) << line[3];
    EXPECT_THAT(outcome.err, HasSubstr("standard output could not be written: No space left on device")) << line[3];
  }
}

TEST_F(ProgramTest, AFileThatMayGrowNoFurtherIsAnErrorAsAFullDiskIs) {
  const std::string limited = "ulimit -f 1; exec '" KILN_PROGRAM "' \"$@\" > '" + path("short.txt") + "'";
  const Outcome outcome = run("/bin/sh", {"-c", limited, "sh", "man"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("standard output could not be written: File too large"));
}

TEST_F(ProgramTest, HelpOfACommandIsThatOfItsOption) {
  const Outcome help = kiln({"help", "cache", "diff"});
  EXPECT_EQ(help.exit_code, 0) << help.err;
  EXPECT_EQ(help.out, kiln({"cache", "diff", "--help"}).out);
  EXPECT_EQ(kiln({"help"}).out, kiln({"--help"}).out);
  const Outcome unknown = kiln({"help", "cache", "dif"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean diff?"));
}

TEST_F(ProgramTest, BashTakesTheCompletionAndCompletes) {
  write("kiln.bash", kiln({"completion", "bash"}).out);
  EXPECT_EQ(run("/bin/bash", {"-n", path("kiln.bash")}).exit_code, 0);
  const auto completed = [&](const std::string& words, int at) {
    const Outcome outcome =
        run("/bin/bash", {"-c", "source '" + path("kiln.bash") + "'; COMP_WORDS=(" + words +
                                    "); COMP_CWORD=" + std::to_string(at) + "; _kiln; echo \"${COMPREPLY[@]}\""});
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  };
  EXPECT_EQ(completed("kiln tu", 1), "tune\n");
  EXPECT_EQ(completed("kiln cache qu", 2), "quarantine\n");
  EXPECT_EQ(completed("kiln tune --sea", 2), "--search\n");
  EXPECT_EQ(completed("kiln tune --search ra", 3), "random\n");
  EXPECT_EQ(completed("kiln tune --search = ra", 4), "random\n");
  EXPECT_THAT(completed("kiln cache diff --", 3), AllOf(HasSubstr("--current"), Not(HasSubstr("--search"))));
}

TEST_F(ProgramTest, ThePageOfTheCommandLineHasEveryExitCode) {
  const std::string page = text_of("docs/command-line.md");
  const std::string help = kiln({"--help"}).out;
  for (const std::string code : {"0", "1", "2", "3", "4", "5", "130"}) {
    EXPECT_THAT(page, HasSubstr("\n| " + code + " | "));
    EXPECT_THAT(help, testing::ContainsRegex("\n +" + code + "  "));
  }
}

}  // namespace
}  // namespace kiln::cli::output_test
