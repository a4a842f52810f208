// The report as a person sees it: in a browser, at the widths of a phone, a laptop and a large screen.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>

#include "deep_tests.h"
#include "program.h"

namespace kiln::cli::report_browser_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Chromium under one of its names, on the PATH.
std::optional<std::string> find_browser() {
  const char* path = getenv("PATH");
  std::stringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      const fs::path candidate = fs::path(folder) / name;
      if (access(candidate.c_str(), X_OK) == 0) return candidate.string();
    }
  }
  return std::nullopt;
}

// Width and height of a PNG, from its first chunk.
std::pair<uint32_t, uint32_t> size_of_png(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  unsigned char head[24] = {};
  stream.read(reinterpret_cast<char*>(head), sizeof head);
  const auto number = [&](size_t at) {
    return uint32_t{head[at]} << 24 | uint32_t{head[at + 1]} << 16 | uint32_t{head[at + 2]} << 8 | head[at + 3];
  };
  return {number(16), number(20)};
}

class ReportTest : public ProgramTest {
 protected:
  // Tunes a few layers, one of them for nothing, and returns the page.
  std::string tune() {
    write("layers.txt",
          "conv_forward x=f32:1x8x14x14 w=f32:16x8x3x3 pad=1 epilogue=bias+relu *2\n"
          "pool_forward x=f32:1x16x14x14 mode=max window=2 stride=2\n"
          "softmax_forward x=f16:3x1000\n");
    const Outcome outcome = kiln({"tune", path("layers.txt"), "--db", path("tuning.db"), "--candidates", "8", "--quiet",
                                  "--report", path("report.html")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return read("report.html");
  }

  // Runs the browser on a page of the folder; what it prints.
  Outcome browse(const std::string& browser, const std::string& page, std::vector<std::string> arguments) {
    const std::vector<std::string> always = {"--headless",
                                             "--no-sandbox",
                                             "--disable-gpu",
                                             "--hide-scrollbars",
                                             "--no-first-run",
                                             "--disable-dev-shm-usage",
                                             "--force-device-scale-factor=1",
                                             "--user-data-dir=" + path("profile")};
    arguments.insert(arguments.begin(), always.begin(), always.end());
    arguments.push_back("file://" + path(page));
    return run(browser, arguments);
  }
};

TEST_F(ReportTest, TellsWhatTuneFound) {
  const std::string page = tune();
  EXPECT_THAT(page, HasSubstr("conv 1x8x14x14 -&gt; 16, 3x3, pad 1, bias+relu"));
  EXPECT_THAT(page, HasSubstr("kiln tune &#39;" + path("layers.txt") + "&#39; --search model --candidates 8 --seed 1"));
  EXPECT_THAT(page, HasSubstr("Algorithms that do not apply"));
  EXPECT_THAT(page, HasSubstr("conv_depthwise"));
  EXPECT_THAT(page, HasSubstr("emulated=yes"));
}

TEST_F(ReportTest, APathThatCannotBeWrittenIsKnownBeforeTuning) {
  const Outcome outcome =
      kiln({"tune", "softmax_forward x=f32:3x100", "--db", path("tuning.db"), "--report", path("none/report.html")});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_FALSE(fs::exists(path("tuning.db")));
}

TEST_F(ReportTest, FitsEveryWindowInARealBrowser) {
  const auto& deep = testing_support::DeepTests::of_project();
  const std::string name = "ReportTest.FitsEveryWindowInARealBrowser";
  if (!deep.why_test_is_due(name)) GTEST_SKIP() << testing_support::unchanged_since_deep_run;
  const std::optional<std::string> browser = find_browser();
  if (!browser) GTEST_SKIP() << "no chromium on the PATH (scripts/setup --browser): the page is not looked at";
  std::string page = tune();
  // A copy that tells its own width, with everything unfolded; the page itself permits no script. In a frame, because a
  // window has a least width.
  page = std::regex_replace(page, std::regex("<meta http-equiv[^>]*>"), "");
  page = std::regex_replace(page, std::regex("</body>"),
                            "<script>for (const d of document.querySelectorAll('details')) d.open = true;"
                            "parent.postMessage(document.documentElement.scrollWidth + ' of ' + innerWidth, '*');"
                            "</script>$&");
  write("measured.html", page);
  fs::create_directories(KILN_SCREENSHOTS);
  for (const unsigned width : {400u, 900u, 1600u}) {
    const std::string text = std::to_string(width);
    write("frame.html",
          "<title>nothing</title><script>onmessage = event => document.title = event.data</script>"
          "<iframe src='measured.html' style='border: 0' height='900' width='" +
              text + "'></iframe>");
    const Outcome outcome = browse(*browser, "frame.html", {"--virtual-time-budget=2000", "--dump-dom"});
    EXPECT_THAT(outcome.out, HasSubstr("<title>" + text + " of " + text + "<")) << outcome.err;
    const std::string picture = KILN_SCREENSHOTS "/" + text + ".png";
    fs::remove(picture);
    browse(*browser, "report.html", {"--window-size=" + text + ",2600", "--screenshot=" + picture});
    ASSERT_TRUE(fs::exists(picture));
    EXPECT_EQ(size_of_png(picture).first, width);
    EXPECT_GT(fs::file_size(picture), 20'000u);  // it shows something
  }
  if (!HasFailure()) deep.passed(deep.subject_of_test(name));
}

}  // namespace
}  // namespace kiln::cli::report_browser_test
