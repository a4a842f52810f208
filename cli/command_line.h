// The program's command line: commands and their options, as thin handles over CLI11. Only command_line.cpp includes
// CLI11, whose headers take longer to compile than most commands do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kiln::cli {

/// Something is wrong with the command line; what() says what.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A check of an option's value.
struct Check {
  std::function<std::string(const std::string& value)> refusal;  ///< Says what is wrong with a value; empty: nothing.
  std::string listed{};                                          ///< Stands behind the option's type in help.
};

/// An option, or an argument by position. A handle: the CommandLine owns the option.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option required(bool is_required = true) const;
  Option check(const Check& check) const;
  /// The word for its value in help.
  Option type_name(const std::string& name) const;
  Option excludes(Option other) const;
  Option needs(Option other) const;
  /// One value each time that the option is given: without this, one of several values takes all words that follow.
  Option one_value() const;
  /// The same, and commas in it separate several.
  Option one_list() const;

  /// "--output", or the name of an argument.
  std::string name() const;
  /// "-o", "--output".
  std::vector<std::string> spellings() const;
  std::string description() const;
  std::string type_name() const;
  bool is_argument() const;
  bool is_required() const;
  /// Whether it is followed by a value.
  bool takes_value() const;
  /// Values that were given, as they stand on the command line; empty if it was left out.
  std::vector<std::string> values() const;

 private:
  CLI::Option* option_;
};

/// A command, or the program itself. A handle: the CommandLine owns the command.
class Command {
 public:
  explicit Command(CLI::App& command) : command_(&command) {}

  Command add_command(const std::string& name, const std::string& description) const;
  /// `names`: "--output", "-o,--output", or "input" for an argument by position. The parse writes to `value`, which has
  /// to outlive it.
  Option add_option(const std::string& names, std::string& value, const std::string& description) const;
  Option add_option(const std::string& names, std::vector<std::string>& values, const std::string& description) const;
  Option add_option(const std::string& names, int& value, const std::string& description) const;
  Option add_option(const std::string& names, int64_t& value, const std::string& description) const;
  Option add_option(const std::string& names, uint64_t& value, const std::string& description) const;
  Option add_option(const std::string& names, double& value, const std::string& description) const;
  Option add_option(const std::string& names, std::optional<double>& value, const std::string& description) const;
  Option add_flag(const std::string& name, bool& value, const std::string& description) const;
  /// An option that prints `text` and ends.
  void add_version(const std::string& name, const std::string& text) const;
  /// One of its commands has to be given.
  void require_command() const;
  /// Neither help nor completion shows it.
  void hide() const;
  /// The end of its help. Commands that are made after this take it over.
  void footer(const std::string& text) const;
  /// Runs when the command line names this command.
  void on_chosen(std::function<void()> run) const;

  std::string name() const;
  /// Names of the commands from the program to this one: "", " tune", " cache diff".
  std::string path() const;
  std::string description() const;
  std::string footer() const;
  /// Its help, hidden or not.
  std::string help() const;
  /// REQUIRES: it has an option of that name.
  Option option(const std::string& name) const;
  std::vector<Option> options() const;
  /// The options that people use, without arguments by position.
  std::vector<Option> visible_options() const;
  std::vector<Option> arguments() const;
  std::vector<Command> commands() const;
  /// The commands that people use, in their order.
  std::vector<Command> visible_commands() const;
  /// A command below this one, hidden or not.
  std::optional<Command> command(const std::string& name) const;
  /// The last command that a parse has reached.
  Command reached() const;
  /// Words that a parse has not understood.
  std::vector<std::string> left_over() const;

 private:
  CLI::App* command_;
};

/// Owner of the program's commands.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// The program itself.
  Command program() const { return Command(*program_); }
  /// Reads the command line, and runs the command that it names. Returns the text that was asked for in place of that:
  /// help, or the version. Throws UsageError, and whatever the command throws.
  std::optional<std::string> run(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> program_;
};

}  // namespace kiln::cli
