// Bad input gets a clear error and its exit code.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <span>
#include <tuple>

#include "kiln/cache/database.h"
#include "onnx_model.h"
#include "program.h"

namespace kiln::cli::errors_test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Bad {
  std::vector<std::string> arguments;
  int exit_code;
  std::string message;
};

class BadUsage : public ProgramTest, public testing::WithParamInterface<Bad> {};

TEST_P(BadUsage, IsExplained) {
  const Outcome outcome = kiln(GetParam().arguments);
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().message));
  EXPECT_THAT(outcome.err, Not(HasSubstr("internal error")));
  EXPECT_EQ(outcome.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    Program, BadUsage,
    testing::Values(
        Bad{{}, 2, "kiln: `kiln` needs a command: tune, run, infer, "},
        Bad{{"cache"}, 2, "kiln: `kiln cache` needs a command: list, "},
        Bad{{"cache", "choose", "-o", "x"}, 2, "there is no option '-o': `kiln help cache choose` lists them"},
        Bad{{"cache", "list", "tuned.pack"}, 2, "`kiln cache list` takes options alone, 'tuned.pack' is too much"},
        Bad{{"tune"}, 2, "input is required"}, Bad{{"dance"}, 2, "there is no command 'dance'"},
        Bad{{"tune", "missing.onnx"}, 4, "missing.onnx"}, Bad{{"tune", "softmax_forward x=f32:1x"}, 2, "column 17"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--search", "magic"}, 2, "--search"},
        Bad{{"tune", "softmax_forward x=f32:?nx10", "--sweep", "n=2..1"}, 2, "--sweep n=2..1: '2..1' is no extent"},
        Bad{{"tune", "softmax_forward x=f32:?nx10"}, 2, "nothing says what ?n is"},
        Bad{{"bundle", "--open", "softmax_forward x=f32:?nx10", "--sweep", "n=2", "--arch", "80", "-o", "never.kiln"},
            2,
            "--sweep some"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--budget", "-3"}, 2, "--budget"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--shard", "3/2"}, 2, "3/2"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--device", "toaster"}, 2, "--device toaster"},
        Bad{{"run", "softmax_forward x=f32:1x10", "--device", "9"}, 2, "9"},
        Bad{{"run", "conv_forward x=f32:1x3x2x2 w=f32:4x3x3x3"}, 2, "the filter does not fit"},
        Bad{{"verify", "softmax_forward x=f32:1x10", "--sample", "0"}, 2, "--sample 0"},
        Bad{{"emit", "softmax_forward x=f32:1x10", "--arch", "sm_70"}, 2, "there are sm_75, "},
        Bad{{"emit", "softmax_forward x=f32:1x10", "--arch", "99"}, 2, "--arch 99: there are no kernels"},
        Bad{{"emit", "softmax_forward x=f32:1x10", "--algorithm", "none"}, 2, "no algorithm none"},
        Bad{{"emit", "softmax_forward x=f32:1x10", "--algorithm", "conv_simple"}, 2, "serves conv_forward"},
        Bad{{"emit", "conv_forward x=f16:2x64x8x8:nhwc w=f16:64x64x3x3:nhwc", "--algorithm", "conv_tensor_persistent"},
            2,
            "refused: conv_tensor_persistent: its rules leave no legal point"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--budget", "nan"}, 2, "--budget"},
        Bad{{"cache", "choose", "a.db", "--max-loss", "nan"}, 2, "'nan' is not a number from 0 to 1000000"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--quiet=x"}, 2, "--quiet = x"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--budget", "0.0001"}, 2, "--budget 0.0001 was over before"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--shard", "0/99999999999"}, 2, "too many: there may be 100000"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--db-dir", ""}, 2, "--db-dir: an empty value"},
        Bad{{"tune", ""}, 2, "an empty value"}, Bad{{"tune", "--status", ""}, 2, "--status: an empty value"},
        Bad{{"cache", "choose", "a.db", "--cards", ""}, 2, "--cards: an empty value"},
        Bad{{"cache", "list", "--db", ""}, 2, "--db: an empty value"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--seed", "-1"}, 2, "--seed"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--db", "/"},
            4,
            "--db / cannot be written: nothing was tuned: / is a folder"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--db", "/proc/nowhere/tuning.db"}, 4, "nothing was tuned"},
        Bad{{"run", "/dev/null"}, 4, "/dev/null is a device, not a file"},
        Bad{{"--db", "off", "tune", "softmax_forward x=f32:1x10"},
            2,
            "--db stands too early: options come behind the command, `kiln tune --db`"},
        Bad{{"--db=off"}, 2, "options come behind the command, `kiln tune --db`"},
        Bad{{"tune", "/"}, 4, "/ is a folder"},
        Bad{{"emit", "softmax_forward x=f32:1x10", "--config", "A=1"}, 2, "--config needs --algorithm"},
        Bad{{"emit", "softmax_forward x=f32:1x10", "--db", "a.db", "--arch", "80"}, 2, "--arch excludes --db"},
        Bad{{"emit", "softmax_forward x=f32:1x10", "--device", "emulator"}, 2, "--device requires --db"},
        Bad{{"cache", "import", "missing.pack"}, 4, "there is no file missing.pack"},
        Bad{{"cache", "diff", "/", "missing.pack"}, 4, "/ is a folder"},
        Bad{{"cache", "list", "--db", "missing.db"}, 4, "there is no file missing.db"},
        Bad{{"cache", "prune", "--stale", "--db", "missing.db"}, 4, "there is no file missing.db"},
        Bad{{"bundle", "--list", "missing.kiln"}, 4, "there is no file missing.kiln"},
        Bad{{"run", "softmax_forward x=f32:1x10", "--pack", "missing.pack"}, 4, "no file missing.pack"},
        Bad{{"explain", "missing"}, 4, "there is no file missing"}, Bad{{"explain", KILN_PROGRAM}, 2, "is not text"},
        Bad{{"describe", "conv_foward"}, 2, "there is no 'conv_foward'; did you mean conv_forward?"},
        Bad{{"tunne"}, 2, "did you mean tune?"}, Bad{{"cache", "lst"}, 2, "did you mean list?"},
        Bad{{"cache", "choos", "t.pack"}, 2, "there is no command 'choos': did you mean choose?"},
        Bad{{"cache", "choos", "t.pack", "--json"}, 2, "there is no command 'choos': did you mean choose?"},
        Bad{{"cache", "list", "a.pack", "b.pack"}, 2, "'a.pack' is too much"},
        Bad{{"tune", "softmax_forward", "x=f32:1x10", "axis=1"}, 2, "no further argument 'x=f32:1x10'"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--serch", "model"}, 2, "did you mean --search?"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--search", "modle"}, 2, "did you mean model?"},
        Bad{{"tune", "softmax_forward", "x=f32:1x10"}, 2, "belongs in quotes"},
        Bad{{"tune", "softmax_foward x=f32:1x10"}, 2, "did you mean softmax_forward?"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--candidates", "0"}, 2, "number from 1 to 1000000"},
        Bad{{"tune", "softmax_forward x=f32:1x10", "--candidates", "few"}, 2, "'few' is not a whole number"},
        Bad{{"tune", "softmax_forward x=f32:1x10:-10,1"}, 2, "'-10' is negative: a stride"}));

TEST_F(ProgramTest, AMisspeltVariableIsNamed) {
  environment_["KILN_DRIVR"] = "cuda";
  const Outcome outcome = kiln({"devices"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("KILN_DRIVR"));
  EXPECT_THAT(outcome.err, HasSubstr("did you mean KILN_DRIVER?"));
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
           {"tune", "softmax_forward x=f32:1x10"}, {"cache", "list"}, {"emit", "softmax_forward x=f32:1x10"}}) {
    EXPECT_EQ(kiln(line).exit_code, 2) << line.front();
  }
}

TEST_F(ProgramTest, ABadSettingOfTheEmulatedDeviceIsSaidOnce) {
  for (const auto& [name, value, message] : {std::tuple("KILN_EMULATOR_THREADS", "2x", "KILN_EMULATOR_THREADS=2x"),
                                             {"KILN_EMULATOR_DEVISE", "h200", "did you mean KILN_EMULATOR_DEVICE?"}}) {
    environment_[name] = value;
    const Outcome outcome = kiln({"run", "softmax_forward x=f32:1x10"});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, testing::StartsWith("kiln: "));
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(outcome.err.find(name), outcome.err.rfind(name)) << outcome.err;
    environment_.erase(name);
  }
}

TEST_F(ProgramTest, AMisspeltVariableIsAWarningInAnApplication) {
  environment_["KILN_DRIVR"] = "cuda";
  const Outcome outcome = run(std::string(KILN_EXAMPLES) + "/example_conv_forward", {});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("unknown environment variable KILN_DRIVR (did you mean KILN_DRIVER?)"));
}

TEST_F(ProgramTest, WhatIsNotThereYetIsEmptyAndNoTrouble) {
  const Outcome listed = kiln({"cache", "list"});
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_EQ(listed.out, "");
  EXPECT_THAT(listed.err, HasSubstr("nothing has been tuned yet"));
  environment_["KILN_CACHE"] = path("new.db");
  const Outcome explained = kiln({"explain", "softmax_forward x=f32:1x10"});
  EXPECT_EQ(explained.exit_code, 0);
  EXPECT_THAT(explained.err, Not(HasSubstr("new.db"))) << "a database that nobody has made yet is nothing to warn of";
  EXPECT_FALSE(std::filesystem::exists(path("new.db")));
}

// Whoever names a file means it: estimates in place of what it holds would be taken for it.
class NamedFiles : public ProgramTest {
 protected:
  static constexpr const char* softmax = "softmax_forward x=f32:3x100";

  /// Every command that reads a database which --db names.
  std::vector<std::vector<std::string>> readers() const {
    return {{"run", softmax},
            {"explain", softmax},
            {"emit", softmax},
            {"infer", model()},
            {"cache", "list"},
            {"cache", "verify"},
            {"bundle", softmax, "--emulated", "--arch", "90", "--untuned", "-o", path("a.kiln")}};
  }
  void expect_refused(std::vector<std::string> arguments, const std::string& option, const std::string& file,
                      int exit_code, const std::string& message) const {
    arguments.insert(arguments.end(), {option, file});
    const Outcome outcome = kiln(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments.front() << ' ' << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments.front();
    EXPECT_EQ(outcome.out, "") << arguments.front();
  }
  void expect_all_refuse(const std::string& database, const std::string& message) const {
    for (const auto& reader : readers()) expect_refused(reader, "--db", database, 4, message);
  }
  std::string model() const {
    test::OnnxModel model(13);
    model.input("x", {3, 100});
    model.node("Softmax", {"x"}, {"y"});
    model.output("y");
    return write("model.onnx", model.bytes());
  }
  void execute(const std::string& name, const char* sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path(name).c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close_v2(db);
  }
};

TEST_F(NamedFiles, ADatabaseThatIsMissingOrNoneEndsEveryCommand) {
  expect_all_refuse(path("typo/tuning.db"), "there is no file " + path("typo/tuning.db"));
  EXPECT_FALSE(std::filesystem::exists(path("typo")));
  expect_all_refuse(write("tuned.pack", "kiln-pack\t1\t0\nend\n"), "tuned.pack is not a database");
  { (void)cache::Database::open(path("newer.db")); }
  execute("newer.db", "PRAGMA user_version = 99");
  expect_all_refuse(path("newer.db"), "newer.db was written by a newer Kiln (schema 99");
}

// A model's requests are known once it is read.
TEST_F(NamedFiles, ADatabaseThatIsDamagedWhereALayerIsLookedUpEndsTheCommand) {
  ASSERT_EQ(kiln({"tune", softmax, "--db", path("t.db"), "--candidates", "1", "--quiet"}).exit_code, 0);
  execute("t.db",
          "PRAGMA writable_schema = 1;"
          "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'devices') "
          "WHERE name = 'records' OR tbl_name = 'records'");
  for (const std::vector<std::string>& reader : std::vector<std::vector<std::string>>{
           {"run", softmax}, {"explain", softmax}, {"emit", softmax}, {"infer", model()}}) {
    expect_refused(reader, "--db", path("t.db"), 4, "t.db is damaged");
  }
}

TEST_F(NamedFiles, APackOrABundleThatIsNoneEndsTheCommand) {
  const std::string text = write("requests.txt", softmax), database = path("t.db");
  { (void)cache::Database::open(database); }
  const std::string newer = write("newer.pack", "kiln-pack\t99\t0\nend\n");
  const std::string cut = write("cut.kiln", "KILNBNDL");
  for (std::vector<std::string> reader :
       std::vector<std::vector<std::string>>{{"run", softmax}, {"explain", softmax}, {"infer", model()}}) {
    expect_refused(reader, "--pack", text, 4, "requests.txt is not a pack");
    expect_refused(reader, "--pack", database, 4, "t.db is not a pack");
    expect_refused(reader, "--pack", newer, 2, "newer.pack");
    if (reader.front() == "explain") continue;
    expect_refused(reader, "--bundle", path("none.kiln"), 4, "there is no file");
    expect_refused(reader, "--bundle", cut, 2, "cut.kiln");
  }
}

TEST_F(NamedFiles, AMistypedPathMakesNoFolders) {
  for (const std::vector<std::string>& writer : std::vector<std::vector<std::string>>{
           {"tune", softmax, "--db"}, {"devices", "--calibrate", "--db"}, {"tune", softmax, "--db-dir"}}) {
    std::vector<std::string> arguments = writer;
    arguments.push_back(path("typo/deeper/t.db"));
    const Outcome outcome = kiln(arguments);
    EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(path("typo/deeper"))) << writer.back();
    EXPECT_FALSE(std::filesystem::exists(path("typo"))) << writer.front();
  }
  environment_["KILN_CACHE"] = path("typo/t.db");
  const Outcome kept_nowhere = kiln({"tune", softmax, "--candidates", "1", "--quiet"});
  EXPECT_EQ(kept_nowhere.exit_code, 5) << kept_nowhere.err;
  EXPECT_THAT(kept_nowhere.err, HasSubstr("there is no folder " + path("typo")));
  EXPECT_FALSE(std::filesystem::exists(path("typo")));
  environment_.erase("KILN_CACHE");
  environment_["XDG_CACHE_HOME"] = path("home/cache");
  EXPECT_EQ(kiln({"tune", softmax, "--candidates", "1", "--quiet"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(path("home/cache/kiln"))) << "Kiln's own place is made";
}

TEST_F(ProgramTest, TuningThatCouldKeepNothingHasItsOwnExitCode) {
  const std::vector<std::string> tune = {"tune", "softmax_forward x=f32:1x10", "--candidates", "1", "--quiet"};
  environment_["XDG_CACHE_HOME"] = "/proc/nowhere";
  const Outcome outcome = kiln(tune);
  EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/proc/nowhere"));
  EXPECT_THAT(outcome.out, HasSubstr("memory only"));
  environment_["KILN_CACHE"] = "off";
  const Outcome wanted = kiln(tune);
  EXPECT_EQ(wanted.exit_code, 0) << "this was asked for";
  EXPECT_THAT(wanted.err, Not(HasSubstr("kept")));
}

TEST_F(ProgramTest, ADatabaseThatOthersCanWriteIsNotUsedAndThatIsNoWish) {
  std::filesystem::create_directory(path("open"));
  const std::string database = path("open/tuning.db");
  const std::vector<std::string> tune = {"tune", "softmax_forward x=f32:1x10", "--candidates", "1", "--quiet"};
  environment_["KILN_CACHE"] = database;
  ASSERT_EQ(kiln(tune).exit_code, 0);
  std::filesystem::permissions(path("open"), std::filesystem::perms::all);
  const Outcome outcome = kiln(tune);
  EXPECT_EQ(outcome.exit_code, 5) << "nothing was kept";
  const std::string why =
      "the tuning database " + database + " is not used, because " + path("open") + " can be written by others";
  EXPECT_THAT(outcome.err, HasSubstr(why));
  EXPECT_EQ(outcome.err.find(why), outcome.err.rfind(why)) << "said once: " << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("there is no cache folder")));
  const Outcome served = kiln({"run", "softmax_forward x=f32:1x10"});
  EXPECT_NE(served.err.find(why), std::string::npos) << served.err;
  EXPECT_EQ(served.err.find(why), served.err.rfind(why)) << "said once: " << served.err;
  EXPECT_THAT(run(std::string(KILN_EXAMPLES) + "/example_conv_forward", {}).err, HasSubstr(why));
  auto named = tune;
  named.insert(named.end(), {"--db", database});
  EXPECT_EQ(kiln(named).exit_code, 0) << "the user named it";
}

TEST_F(ProgramTest, ADriverThatIsNotThereIsNamed) {
  environment_["KILN_DRIVER"] = "/nonexistent/libcuda.so";
  const Outcome outcome = kiln({"run", "softmax_forward x=f32:1x10"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/libcuda.so"));
}

TEST_F(ProgramTest, TuningWithoutAWorkerIsRefusedWithAHint) {
  environment_["KILN_WORKER"] = "/nonexistent/kiln";
  const Outcome outcome = kiln({"tune", "softmax_forward x=f32:1x10"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/kiln"));
}

TEST_F(ProgramTest, AWorkerThatDiesAtItsStartIsAFaultOfTheDevice) {
  environment_["KILN_WORKER"] = "/bin/true";
  for (const char* database : {"off", "tuning.db"}) {
    const Outcome outcome =
        kiln({"tune", "softmax_forward x=f32:1x10", "--db", database == std::string("off") ? "off" : path(database)});
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("the device cannot be opened: the worker process died"));
    EXPECT_THAT(outcome.err, HasSubstr("KILN_WORKER"));
  }
}

// A rename would put a file in the place of a pipe or a device, and lose what reads it.
TEST_F(ProgramTest, OutputGoesToFilesAndBehindLinks) {
  const std::string layer = "softmax_forward x=f32:1x10", pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"cache", "export", pipe},
                                             {"bundle", layer, "--arch", "90", "--untuned", "-o", pipe},
                                             {"tune", layer, "--db", "off", "--report", pipe}}) {
    const Outcome outcome = kiln(line);
    EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(pipe + ": it is a pipe, not a file"));
    EXPECT_TRUE(std::filesystem::is_fifo(pipe)) << line.front();
  }
  EXPECT_THAT(kiln({"tune", layer, "--db", pipe}).err, HasSubstr(pipe + " is a pipe, not a database"));
  std::filesystem::create_symlink("target", path("link"));
  EXPECT_EQ(kiln({"cache", "export", path("link")}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_THAT(read("target"), testing::StartsWith("kiln-pack"));
}

TEST_F(ProgramTest, HelpShowsExamplesAndExitCodes) {
  const Outcome outcome = kiln({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("Examples:"));
  EXPECT_THAT(outcome.out, HasSubstr("Exit codes:"));
  EXPECT_THAT(kiln({"--version"}).out, testing::StartsWith("kiln "));
}

TEST_F(ProgramTest, HelpOfACommandShowsItsOwnExample) {
  EXPECT_THAT(kiln({"help", "completion"}).out, HasSubstr("bash")) << "no list shows it, and its errors send here";
  for (const char* command : {"list", "stats", "diff", "verify", "prune", "quarantine", "export", "import", "merge"}) {
    const Outcome outcome = kiln({"help", "cache", command});
    EXPECT_THAT(outcome.out, HasSubstr(std::string("Example: kiln cache ") + command));
    EXPECT_THAT(outcome.out, Not(HasSubstr("Exit codes:"))) << command;
  }
}

// A title, a cleared screen, a text that is reordered, a control of one character, a byte that is no text.
constexpr const char* escape = "\x1b]0;owned\x07\x1b[2J\xE2\x80\xAE\xC2\x9B\xFF";

class HostileText : public ProgramTest {
 protected:
  static void expect_harmless(const Outcome& outcome) {
    for (const std::string& text : {outcome.out, outcome.err}) {
      for (const char c : text) {
        EXPECT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)) << static_cast<int>(c) << text;
      }
      EXPECT_THAT(text, Not(HasSubstr("\xE2\x80\xAE")));
      EXPECT_THAT(text, Not(HasSubstr("\xC2\x9B")));
    }
  }
};

TEST_F(HostileText, OfAModelReachesNoTerminal) {
  test::OnnxModel model(13);
  model.input(escape, {1, 2});
  model.node("Relu", {escape}, {"r"});
  model.node(escape, {"r"}, {"u"});
  model.node("Relu", {"u"}, {escape + std::string("y")});
  model.output(escape + std::string("y"));
  const std::string path = write("m.onnx", model.bytes());
  for (const std::vector<std::string>& command : {std::vector<std::string>{"explain", path},
                                                  {"infer", path},
                                                  {"infer", path, "--plan"},
                                                  {"tune", path, "--dry"}}) {
    expect_harmless(kiln(command));
  }
  const Outcome explained = kiln({"explain", path});
  EXPECT_THAT(explained.out + explained.err, HasSubstr("\\x1b]0;owned\\x07\\x1b[2J\\u202e\\u009b\\xff"));
}

TEST_F(HostileText, OfAPackOrADatabaseReachesNoTerminal) {
  const std::string request = "softmax_forward x=f32:3x100:nc y=f32:3x100:nc axis=1 mode=accurate alpha=1 beta=0";
  {
    auto database = cache::Database::open(path("t.db"));
    database.put_device({"fake", "Fake", 9, 0, 132, true});
    database.begin_session({"s", "fake", "plan", "0.1.0", 1, {}});
    database.begin_run({"s", escape, "1/2", escape, 1, {}}, std::vector<std::string>{request});
    cache::RunLayer failed{request, cache::LayerState::failed, escape};
    database.report_run("s", 2, {}, std::span(&failed, 1));
    database.add_quarantine({"source", "fake", "1", "2", escape, 1});
  }
  environment_["KILN_CACHE"] = path("t.db");
  const Outcome status = kiln({"tune", "--status", path("t.db")});
  EXPECT_THAT(status.out, HasSubstr("\\x1b]0;owned"));
  expect_harmless(status);
  expect_harmless(kiln({"cache", "quarantine"}));
  const std::string pack = write("p.pack", fmt::format("kiln-pack\t1\t{0}\ndevice\t{0}\tn\t9.0\t1\treal\nrequest\t{0}\n"
                                                       "record\t{0}\tend\n",
                                                       escape));
  for (const char* command : {"import", "merge", "stats"}) expect_harmless(kiln({"cache", command, pack}));
  environment_["KILN_PACK_PATH"] = pack;
  expect_harmless(kiln({"run", request}));
  expect_harmless(kiln({"explain", request}));
}

TEST_F(HostileText, OfAHostileSchemaIsNeitherRunNorPrinted) {
  write("t.db", "");
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path("t.db").c_str(), &db), SQLITE_OK);
  sqlite3_exec(
      db,
      "PRAGMA application_id = 1263094862; PRAGMA user_version = 5; CREATE VIEW devices AS WITH RECURSIVE n(i) "
      "AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, 'd' AS device, 'n' AS name, 9 AS cc_major, 0 "
      "AS cc_minor, 1 AS sms, 0 AS emulated, 0 AS checksum FROM n; CREATE TABLE \"\x1b]0;owned\x07\"(a)",
      nullptr, nullptr, nullptr);
  sqlite3_close_v2(db);
  environment_["KILN_CACHE"] = path("t.db");
  const Outcome list = kiln({"cache", "list"});
  EXPECT_EQ(list.exit_code, 4);
  EXPECT_THAT(list.err, HasSubstr("is no tuning database that Kiln made"));
  expect_harmless(list);
  const Outcome explained = kiln({"explain", "softmax_forward x=f32:3x100"});
  EXPECT_THAT(explained.err, HasSubstr("is no tuning database that Kiln made"));
  EXPECT_EQ(explained.exit_code, 0);
  expect_harmless(explained);
}

}  // namespace
}  // namespace kiln::cli::errors_test
