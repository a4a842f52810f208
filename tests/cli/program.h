// Runs the `kiln` program as a user would, in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kiln::cli {

struct Outcome {
  int exit_code = -1;  ///< 128 + signal if it was killed
  std::string out, err;
};

class ProgramTest : public testing::Test {
 protected:
  ProgramTest();
  ~ProgramTest() override;

  /// Runs `kiln` (or another program) with these arguments and waits.
  Outcome kiln(const std::vector<std::string>& arguments) const;
  Outcome run(const std::string& program, const std::vector<std::string>& arguments) const;
  /// Starts `kiln` and returns at once. Its output goes to `out.txt` and `err.txt` of the folder.
  pid_t start(const std::string& program, const std::vector<std::string>& arguments) const;
  Outcome wait(pid_t process) const;
  /// Runs `kiln` on a terminal of so many columns; both outputs are in `out`, with the line ends of a terminal.
  Outcome kiln_on_terminal(unsigned short columns, const std::vector<std::string>& arguments) const;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;

  /// Variables beside those of this process.
  std::map<std::string, std::string> environment_;

 private:
  std::filesystem::path folder_;
};

}  // namespace kiln::cli
