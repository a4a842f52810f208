// User code and user templates through the program: tuned, checked, run, explained and emitted like everything else.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <utility>

#include "program.h"

namespace kiln::cli::user_code_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string example = std::string(KILN_SOURCE_DIR) + "/examples/user_template";

class UserCodeProgram : public ProgramTest {
 protected:
  // A user template of softmax, which programs read from now on; `body` is its kernel's.
  void use_doubled(const std::string& body) {
    std::filesystem::create_directories(path("mine"));
    write("mine/doubled.json", R"({
      "kiln_template": 1, "operation": "softmax_forward", "efficiency": 100,
      "applies": {"plain rows": "CONTIGUOUS_ROWS && !LOG && !USER_CODE && ALPHA == 1 && BETA == 0"},
      "launches": [{"kernel": "doubled", "grid": ["ROWS"], "block": [1], "arguments": ["x", "y"]}]})");
    write("mine/doubled.cu", "extern \"C\" __global__ void doubled(const TX* x, TY* y) {" + body + "}");
    environment_["KILN_USER_TEMPLATES"] = path("mine");
  }
};

TEST_F(UserCodeProgram, TunesAUserTemplateToItsEnd) {
  environment_["KILN_USER_TEMPLATES"] = example;
  const Outcome tuned = kiln({"tune", example + "/requests.txt", "--db", path("t.db"), "--json", "--quiet"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const auto report = nlohmann::json::parse(tuned.out);
  bool timed = false;
  for (const auto& trial : report["layers"][0]["trials"]) {
    if (trial["algorithm"] == "conv_stem") timed = timed || trial["outcome"] == "timed";
  }
  EXPECT_TRUE(timed) << tuned.out;

  const Outcome run = kiln({"run", "--check", example + "/requests.txt", "--db", path("t.db")});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("1 layers agree"), HasSubstr("conv_stem")));
  EXPECT_THAT(kiln({"explain", example + "/requests.txt", "--db", path("t.db")}).out, HasSubstr("chosen: conv_stem"));

  // Whoever has not got the template uses another variant.
  environment_.erase("KILN_USER_TEMPLATES");
  const Outcome without = kiln({"explain", example + "/requests.txt", "--db", path("t.db")});
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, AllOf(HasSubstr("chosen: "), Not(HasSubstr("chosen: conv_stem"))));
}

// Neither before anybody has checked it nor afterwards.
TEST_F(UserCodeProgram, AWrongUserTemplateServesNobody) {
  use_doubled(R"(
    float sum = 0;
    for (int i = 0; i < ROW; ++i) sum += expf(x[blockIdx.x * X_ROW_STRIDE + i]);
    for (int i = 0; i < ROW; ++i) y[blockIdx.x * Y_ROW_STRIDE + i] = 2 * expf(x[blockIdx.x * X_ROW_STRIDE + i]) / sum;)");
  const std::string softmax = "softmax_forward x=f32:3x100", bundle = path("app.kiln");
  const auto serves_right = [&](const std::string& because) {
    const Outcome run = kiln({"run", "--check", softmax, "--db", path("t.db")});
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    EXPECT_THAT(run.out, AllOf(HasSubstr("1 layers agree"), Not(HasSubstr("doubled"))));
    EXPECT_THAT(kiln({"explain", softmax, "--db", path("t.db")}).out, AllOf(HasSubstr("not used"), HasSubstr(because)));
    ASSERT_EQ(kiln({"bundle", softmax, "--untuned", "--emulated", "--arch", "90", "--db", path("t.db"), "-o", bundle})
                  .exit_code,
              0);
    EXPECT_THAT(kiln({"bundle", "--list", bundle}).out, Not(HasSubstr("doubled")));
  };
  const Outcome another =
      kiln({"tune", "activation_forward x=f32:9 mode=relu", "--candidates", "1", "--db", path("t.db")});
  ASSERT_EQ(another.exit_code, 0) << another.out << another.err;
  serves_right("no check has passed");
  ASSERT_EQ(
      kiln({"bundle", softmax, "--untuned", "--allow-unchecked-templates", "--emulated", "--arch", "90", "-o", bundle})
          .exit_code,
      0);
  EXPECT_THAT(kiln({"bundle", "--list", bundle}).out, HasSubstr("doubled"));
  const Outcome tuned = kiln({"tune", softmax, "--db", path("t.db"), "--candidates", "3"});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.out << tuned.err;
  serves_right("it gave a wrong result on");
}

// A pack that says of a wrong template that it passed its check.
TEST_F(UserCodeProgram, AnImportedLieAboutAUserTemplateIsFoundOutForGood) {
  use_doubled("for (int i = 0; i < ROW; ++i) y[blockIdx.x * Y_ROW_STRIDE + i] = 2 * x[blockIdx.x * X_ROW_STRIDE + i];");
  const std::string softmax = "softmax_forward x=f32:3x100";
  ASSERT_EQ(kiln({"tune", softmax, "--db", path("honest.db"), "--candidates", "3"}).exit_code, 0);
  ASSERT_EQ(kiln({"cache", "export", "--db", path("honest.db"), path("honest.pack")}).exit_code, 0);
  const std::string honest = read("honest.pack");
  const std::regex wrong("(record\tdoubled\t[^\t]*\t-\t)wrong_result\t([a-z]*)\t0\t");
  ASSERT_TRUE(std::regex_search(honest, wrong)) << honest;
  write("lie.pack", std::regex_replace(honest, wrong, "$1timed\t$2\t2e-06\t"));
  const auto import = [&](const std::string& database) {
    const Outcome imported = kiln({"cache", "import", path("lie.pack"), "--db", path(database)});
    ASSERT_EQ(imported.exit_code, 0) << imported.out << imported.err;
    EXPECT_THAT(kiln({"explain", softmax, "--db", path(database)}).out, Not(HasSubstr("gave a wrong result")));
  };
  const auto is_out = [&](const std::string& database) {
    const Outcome run = kiln({"run", "--check", softmax, "--db", path(database)});
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    EXPECT_THAT(run.out, Not(HasSubstr("doubled")));
    EXPECT_THAT(kiln({"explain", softmax, "--db", path(database)}).out, HasSubstr("it gave a wrong result on"));
  };
  import("verified.db");
  const Outcome verified = kiln({"cache", "verify", "--db", path("verified.db"), "--sample", "all"});
  EXPECT_EQ(verified.exit_code, 1) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("1 are not used any more"));
  is_out("verified.db");
  import("run.db");
  const Outcome ran = kiln({"run", "--check", softmax, "--db", path("run.db")});
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("doubled"))) << "a time of others is no check";
  EXPECT_THAT(kiln({"explain", softmax, "--db", path("run.db")}).out,
              HasSubstr("a user template that no check has passed for this request"));
  import("tuned.db");
  const Outcome tuned = kiln({"tune", softmax, "--db", path("tuned.db"), "--candidates", "3"});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.out << tuned.err;
  is_out("tuned.db");
}

// A bundle holds programs, which are barred as such.
TEST_F(UserCodeProgram, AWrongVariantOfABundleIsFoundOutForGood) {
  std::filesystem::create_directories(path("mine"));
  write("mine/doubled.json", R"({
    "kiln_template": 1, "operation": "softmax_forward", "efficiency": 100,
    "applies": {"plain rows": "CONTIGUOUS_ROWS && !LOG && !USER_CODE && ALPHA == 1 && BETA == 0"},
    "launches": [{"kernel": "doubled", "grid": ["ROWS"], "block": [1], "arguments": ["x", "y"]}]})");
  write("mine/doubled.cu", R"(extern "C" __global__ void doubled(const TX* x, TY* y) {
    for (int i = 0; i < ROW; ++i) y[blockIdx.x * Y_ROW_STRIDE + i] = 2 * x[blockIdx.x * X_ROW_STRIDE + i];
  })");
  environment_["KILN_USER_TEMPLATES"] = path("mine");
  const std::string softmax = "softmax_forward x=f32:3x100", bundle = path("app.kiln");
  ASSERT_EQ(
      kiln({"bundle", softmax, "--untuned", "--allow-unchecked-templates", "--emulated", "--arch", "90", "-o", bundle})
          .exit_code,
      0);
  ASSERT_EQ(kiln({"tune", "activation_forward x=f32:9 mode=relu", "--candidates", "1", "--db", path("t.db")}).exit_code,
            0);
  const std::vector<std::string> run = {"run", "--check", softmax, "--bundle", bundle, "--db", path("t.db")};
  const Outcome found = kiln(run);
  EXPECT_EQ(found.exit_code, 1) << found.out << found.err;
  EXPECT_THAT(found.out,
              AllOf(HasSubstr("doubled"), HasSubstr("WRONG"), HasSubstr("1 variants are not used any more")));
  const Outcome again = kiln(run);
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_THAT(again.out, Not(HasSubstr("doubled")));
}

// User templates for softmax: one whose result is wrong, and one that never ends. Both claim to be as fast as can be.
class BadTemplates : public ProgramTest {
 protected:
  BadTemplates() {
    std::filesystem::create_directories(path("templates"));
    environment_["KILN_USER_TEMPLATES"] = path("templates");
  }

  void add(const std::string& name, const std::string& body) const {
    write("templates/" + name + ".cu",
          "#include \"lib/types.cuh\"\nextern \"C\" __global__ void k(const TX* x, TY* y) {\n" + body + "}\n");
    write("templates/" + name + ".json", R"({"kiln_template": 1, "operation": "softmax_forward", "efficiency": 100,
      "parameters": {"THREADS": [32, 64, 96, 128, 160, 192]},
      "launches": [{"kernel": "k", "grid": ["ROWS"], "block": ["THREADS"], "arguments": ["x", "y"]}]})");
  }

  // Variants of Kiln's own that have a time, in the order tried.
  static std::vector<std::string> timed_in(const nlohmann::json& layer) {
    std::vector<std::string> variants;
    for (const auto& trial : layer["trials"]) {
      if (trial["outcome"] != "timed") continue;
      variants.push_back(trial["algorithm"].get<std::string>() + " " + trial["config"].get<std::string>());
    }
    return variants;
  }
};

TEST_F(BadTemplates, LeaveALayerItsBestBuiltInKernelAndAreReported) {
  const std::vector<std::string> arguments = {
      "tune", "softmax_forward x=f32:3x100", "--db", path("t.db"), "--candidates", "3", "--run-limit", "3"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> all = arguments;
    all.push_back(more);
    return all;
  };
  add("wrong", "if (blockIdx.x == 0 && threadIdx.x == 0) y[0] = from_float<TY>(to_float(x[0]));\n");
  add("endless", "for (volatile float v = 1; v > 0;) {}\n");
  const Outcome outcome = kiln(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("wrong THREADS=32: wrong: "), HasSubstr("endless THREADS=32: timed out: "),
                                 HasSubstr("exceeded the time limit of 3 s")));
  EXPECT_THAT(outcome.err, HasSubstr("; checking endless THREADS="));

  const auto layer = nlohmann::json::parse(kiln(with("--json")).out)["layers"][0];
  const std::vector<std::string> timed = timed_in(layer);
  EXPECT_EQ(timed.size(), 3U) << layer;
  EXPECT_THAT(layer["default"]["algorithm"].get<std::string>(), testing::StartsWith("softmax"));

  // The same as without the templates, and nothing of them is tried again.
  environment_.erase("KILN_USER_TEMPLATES");
  const auto plain = nlohmann::json::parse(kiln(with("--json")).out)["layers"][0];
  EXPECT_EQ(timed_in(plain), timed);
  EXPECT_EQ(plain["best"], layer["best"]);
}

// An expression that never ends: the trusted kernel runs it too, so nothing of the layer can be checked.
TEST_F(UserCodeProgram, EveryLimitBoundsCodeThatNeverEnds) {
  const std::string request = "softmax_forward x=f32:3x40 epilogue=user:endless";
  const std::string file = write("endless.txt",
                                 "expression endless\nfor (volatile float v = acc; v == v;) {\n}\nreturn acc;\nend "
                                 "expression\n" +
                                     request + "\nsoftmax_forward x=f32:3x41\n");
  const auto timed = [&](const std::vector<std::string>& arguments) {
    const auto start = std::chrono::steady_clock::now();
    Outcome outcome = kiln(arguments);
    return std::pair(std::move(outcome),
                     std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  };
  const auto [verified, verify_seconds] = timed({"verify", file, "--run-limit", "1"});
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out, AllOf(HasSubstr("timed_out"), HasSubstr("exceeded the time limit of 1 s")));

  const std::vector<std::string> tune = {"tune", file, "--db", path("t.db"), "--candidates", "1"};
  const auto with = [&](const std::string& option, const std::string& value) {
    std::vector<std::string> all = tune;
    all.insert(all.end(), {option, value});
    return all;
  };
  const auto [cut, cut_seconds] = timed(with("--budget", "8"));
  EXPECT_LT(cut_seconds, 8 + 12) << "the grace, and a machine that is busy";
  EXPECT_THAT(cut.err, HasSubstr("; making operands and running the trusted softmax"));

  const auto [limited, limited_seconds] = timed(with("--run-limit", "1"));
  EXPECT_EQ(limited.exit_code, 1) << limited.out << limited.err;
  EXPECT_THAT(limited.out, HasSubstr("exceeded the time limit of 1 s"));
  EXPECT_THAT(limited.out, HasSubstr("all layers, with their counts")) << "the other one is tuned";
}

const char* const leaky = "expression leaky(; slope)\nleaky_relu(acc, slope)\nend expression\n";

TEST_F(UserCodeProgram, VerifiesAndEmitsASingleRequest) {
  const std::string file = write("leaky.txt", leaky), request = "softmax_forward x=f32:3x40 epilogue=user:leaky";
  const Outcome verified = kiln({"verify", "--expression", file, request});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("of 1 requests agree with the reference, 0 do not"));
  const Outcome emitted = kiln({"emit", "--expression", file, request});
  EXPECT_THAT(emitted.out, HasSubstr("#line 1 \"user code\"\nleaky_relu(acc, slope)\n"));
}

TEST_F(UserCodeProgram, ShowsMistakesInTheUsersLines) {
  const std::string file = write("bad.txt", "expression bad\nacc +\n  nothing\nend expression\n");
  const std::string request = "softmax_forward x=f32:3x40 epilogue=user:bad";
  EXPECT_THAT(kiln({"emit", "softmax_forward x=f32:3x40 epilogue=user:bad"}).err,
              HasSubstr("there is no expression 'bad'"));
  const Outcome verified = kiln({"verify", "--expression", file, request});
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out + verified.err, HasSubstr("line 2, column 3: identifier \"nothing\" is undefined"));
  const Outcome ran = kiln({"run", "--expression", file, request, "--db", "off"});
  EXPECT_THAT(ran.out, testing::ContainsRegex("FAILED: [^\n]*line 2, column 3: identifier \"nothing\" [^\n]*  -"))
      << "the cells of a row stand in one line";
  const Outcome tuned = kiln({"tune", "--expression", file, request, "--db", path("t.db"), "--quiet"});
  EXPECT_EQ(tuned.exit_code, 1);
  EXPECT_THAT(tuned.out + tuned.err, HasSubstr("line 2, column 3"));
}

// Databases, packs and recorded keys hold the digest of user code only.
class UserCodeWithoutItsText : public UserCodeProgram {
 protected:
  UserCodeWithoutItsText() {
    const Outcome tuned = kiln({"tune", "--expression", file_, "softmax_forward x=f32:3x40 epilogue=user:leaky", "--db",
                                path("a.db"), "--candidates", "2", "--quiet"});
    EXPECT_EQ(tuned.exit_code, 0) << tuned.out << tuned.err;
    EXPECT_EQ(kiln({"cache", "export", "--db", path("a.db"), path("a.pack")}).exit_code, 0);
    const std::string pack = read("a.pack");
    const size_t at = pack.find("softmax_forward"), digest = pack.find("user:", at);
    key_ = pack.substr(at, pack.find('\n', at) - at);
    digest_ = pack.substr(digest, std::string("user:").size() + 32);
  }

  // Says which text, and how to give it.
  auto names_it() const { return AllOf(HasSubstr(digest_), HasSubstr("is not known"), HasSubstr("--expression")); }

  const std::string file_ = write("leaky.txt", leaky);
  std::string key_, digest_;
};

TEST_F(UserCodeWithoutItsText, IsImportedKeptAndToldOf) {
  const Outcome imported = kiln({"cache", "import", "--db", path("b.db"), path("a.pack")});
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.out, AllOf(HasSubstr("2 records added"), HasSubstr("0 lines refused"), names_it()));
  EXPECT_THAT(imported.out, HasSubstr("2 records are of " + digest_));
  const Outcome known = kiln({"cache", "import", "--expression", file_, "--db", path("c.db"), path("a.pack")});
  EXPECT_EQ(known.exit_code, 0) << known.err;
  EXPECT_THAT(known.out, AllOf(HasSubstr("2 records added"), Not(HasSubstr(digest_))));
  EXPECT_THAT(kiln({"run", "--expression", file_, key_, "--db", path("b.db")}).out, HasSubstr("on this device"));

  std::string altered = read("a.pack");
  altered.replace(altered.rfind("THREADS="), 8, "THREADZ=");
  write("altered.pack", altered);
  const Outcome refused = kiln({"cache", "import", "--db", path("d.db"), path("altered.pack")});
  EXPECT_EQ(refused.exit_code, 1) << "what does not depend on the text is judged without it";
  EXPECT_THAT(refused.err, HasSubstr("THREADZ"));
}

TEST_F(UserCodeWithoutItsText, IsLeftOutOfCacheVerifyByName) {
  const Outcome without = kiln({"cache", "verify", path("a.db"), "--sample", "all"});
  EXPECT_EQ(without.exit_code, 0) << without.out << without.err;
  EXPECT_THAT(without.out, AllOf(HasSubstr("0 of 0 candidates"), HasSubstr("2 more are of user code"), names_it()));
  const Outcome with = kiln({"cache", "verify", path("a.db"), "--sample", "all", "--expression", file_});
  EXPECT_EQ(with.exit_code, 0) << with.out << with.err;
  EXPECT_THAT(with.out, AllOf(HasSubstr("2 of 2 candidates"), HasSubstr("0 failed"), Not(HasSubstr("not known"))));
}

TEST_F(UserCodeWithoutItsText, IsNamedByEveryCommandThatNeedsIt) {
  const std::string other = "softmax_forward x=f32:3x41", requests = write("requests.txt", key_ + "\n" + other + "\n");
  const Outcome tuned = kiln({"tune", requests, "--db", path("a.db"), "--candidates", "1", "--quiet"});
  EXPECT_EQ(tuned.exit_code, 1);
  EXPECT_THAT(tuned.out, names_it());
  const auto database = kiln({"cache", "list", "--db", path("a.db")});
  EXPECT_THAT(database.out, HasSubstr("x=f32:3x41:nc")) << "the layer beside it is tuned";
  const Outcome verified = kiln({"verify", requests});
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out,
              AllOf(names_it(), HasSubstr("of 2 requests agree with the reference, 0 do not; 1 could not be checked")));
  const Outcome ran = kiln({"run", requests, "--db", path("a.db")});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, AllOf(names_it(), HasSubstr("softmax 3x41")));
  const Outcome explained = kiln({"explain", requests, "--db", path("a.db")});
  EXPECT_EQ(explained.exit_code, 1);
  EXPECT_THAT(explained.out, AllOf(names_it(), HasSubstr("tried on this device")));
  const Outcome emitted = kiln({"emit", key_});
  EXPECT_EQ(emitted.exit_code, 2);
  EXPECT_THAT(emitted.err, names_it());
}

TEST_F(UserCodeWithoutItsText, IsNamedByBundleWhichThenTakesIt) {
  const std::vector<std::string> bundle = {"bundle", key_,         "--arch", "90",          "--emulated",
                                           "--db",   path("a.db"), "-o",     path("a.kiln")};
  const Outcome without = kiln(bundle);
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_THAT(without.err, names_it());
  EXPECT_FALSE(std::filesystem::exists(path("a.kiln")));
  std::vector<std::string> with = bundle;
  with.insert(with.end(), {"--expression", file_});
  const Outcome made = kiln(with);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  environment_["KILN_NVRTC"] = path("there-is-no-nvrtc");
  const Outcome run = kiln({"run", key_, "--bundle", path("a.kiln"), "--db", "off"});
  EXPECT_EQ(run.exit_code, 0) << "a bundle needs neither NVRTC nor the text: " << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("bundle " + path("a.kiln")));
}

TEST_F(UserCodeProgram, AUserTemplateThatIsNotHereIsNamedOnImport) {
  environment_["KILN_USER_TEMPLATES"] = example;
  ASSERT_EQ(kiln({"tune", example + "/requests.txt", "--db", path("t.db"), "--candidates", "2", "--quiet"}).exit_code,
            0);
  ASSERT_EQ(kiln({"cache", "export", "--db", path("t.db"), path("t.pack")}).exit_code, 0);
  const Outcome with =
      kiln({"cache", "import", "--db", path("a.db"), path("t.pack"), "--expression", write("none.txt", leaky)});
  EXPECT_EQ(with.exit_code, 0) << with.err;
  EXPECT_THAT(with.out, Not(HasSubstr("conv_stem")));
  environment_.erase("KILN_USER_TEMPLATES");
  const Outcome without = kiln({"cache", "import", "--db", path("b.db"), path("t.pack")});
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, AllOf(HasSubstr("of conv_stem, which is not here"), HasSubstr("KILN_USER_TEMPLATES")));
}

TEST_F(UserCodeProgram, TakesExpressionsFromAFileOfRequestsToo) {
  const std::string file =
      write("recorded.txt", std::string(leaky) + "softmax_forward x=f32:3x40 epilogue=user:leaky\n");
  const std::string request = "softmax_forward x=f32:5x9 epilogue=user:leaky";
  EXPECT_EQ(kiln({"emit", "--expression", file, request}).exit_code, 0);
  const Outcome none = kiln({"emit", "--expression", write("none.txt", "softmax_forward x=f32:3x40\n"), request});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("there is no expression 'leaky'"));
}

TEST_F(UserCodeProgram, RefusesAFolderWithoutTemplates) {
  environment_["KILN_USER_TEMPLATES"] = path(".");
  const Outcome outcome = kiln({"emit", "softmax_forward x=f32:3x40"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("holds no user template"));
}

}  // namespace
}  // namespace kiln::cli::user_code_test
