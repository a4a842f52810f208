#include "program.h"

#include <fcntl.h>
#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "kernel_folder.h"

namespace kiln::cli {

namespace fs = std::filesystem;

ProgramTest::ProgramTest() {
  std::string pattern = (fs::temp_directory_path() / "kiln-program-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
  // Never the cache of the person who runs the tests.
  environment_["XDG_CACHE_HOME"] = (folder_ / "cache").string();
  environment_["XDG_DATA_DIRS"] = (folder_ / "share").string();
  environment_["KILN_KERNEL_STORE"] = testing_support::kernel_folder();
}

ProgramTest::~ProgramTest() {
  fs::remove_all(folder_);
}

std::string ProgramTest::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name), std::ios::binary) << text;
  return path(name);
}

std::string ProgramTest::read(const std::string& name) const {
  std::ifstream stream(path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

pid_t ProgramTest::start(const std::string& program, const std::vector<std::string>& arguments) const {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!environment_.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  for (const auto& [name, value] : environment_) variables.push_back(name + "=" + value);
  std::vector<char*> argv = {const_cast<char*>(program.c_str())}, envp;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  for (std::string& variable : variables) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, path("out.txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0666);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, path("err.txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0666);
  pid_t process = -1;
  const int error = posix_spawn(&process, program.c_str(), &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0) << "cannot start " << program;
  return process;
}

Outcome ProgramTest::wait(pid_t process) const {
  int status = 0;
  waitpid(process, &status, 0);
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read("out.txt");
  outcome.err = read("err.txt");
  return outcome;
}

Outcome ProgramTest::run(const std::string& program, const std::vector<std::string>& arguments) const {
  return wait(start(program, arguments));
}

Outcome ProgramTest::kiln(const std::vector<std::string>& arguments) const {
  return run(KILN_PROGRAM, arguments);
}

Outcome ProgramTest::kiln_on_terminal(unsigned short columns, const std::vector<std::string>& arguments) const {
  std::vector<char*> argv = {const_cast<char*>(KILN_PROGRAM)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t process = forkpty(&terminal, nullptr, nullptr, &size);
  if (process == 0) {
    for (const auto& [name, value] : environment_) setenv(name.c_str(), value.c_str(), 1);
    unsetenv("COLUMNS");
    execv(argv[0], argv.data());
    _exit(127);
  }
  Outcome outcome;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = ::read(terminal, buffer.data(), buffer.size())) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) outcome.out.append(buffer.data(), static_cast<size_t>(got));
  }
  close(terminal);
  int status = 0;
  waitpid(process, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace kiln::cli
