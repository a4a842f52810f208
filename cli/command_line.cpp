#include "command_line.h"

#include <CLI/CLI.hpp>
#include <sstream>
#include <utility>

namespace kiln::cli {
namespace {

std::vector<Option> handles(const std::vector<CLI::Option*>& options) {
  std::vector<Option> handles;
  for (CLI::Option* option : options) handles.emplace_back(*option);
  return handles;
}

std::vector<Command> handles(const std::vector<CLI::App*>& commands) {
  std::vector<Command> handles;
  for (CLI::App* command : commands) handles.emplace_back(*command);
  return handles;
}

}  // namespace

// --- Option ---

Option Option::required(bool is_required) const {
  option_->required(is_required);
  return *this;
}

Option Option::check(const Check& check) const {
  option_->check(check.refusal, check.listed);
  return *this;
}

Option Option::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::one_value() const {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::one_list() const {
  option_->delimiter(',');
  return one_value();
}

std::string Option::name() const {
  return option_->get_name();
}

std::vector<std::string> Option::spellings() const {
  std::vector<std::string> names;
  for (const std::string& name : option_->get_snames()) names.push_back("-" + name);
  for (const std::string& name : option_->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string Option::description() const {
  return option_->get_description();
}

std::string Option::type_name() const {
  return option_->get_type_name();
}

bool Option::is_argument() const {
  return option_->get_positional();
}

bool Option::is_required() const {
  return option_->get_required();
}

bool Option::takes_value() const {
  return option_->get_type_size_max() > 0;
}

std::vector<std::string> Option::values() const {
  return option_->results();
}

// --- Command ---

Command Command::add_command(const std::string& name, const std::string& description) const {
  return Command(*command_->add_subcommand(name, description));
}

Option Command::add_option(const std::string& names, std::string& value, const std::string& description) const {
  return Option(*command_->add_option(names, value, description));
}

Option Command::add_option(const std::string& names, std::vector<std::string>& values,
                           const std::string& description) const {
  return Option(*command_->add_option(names, values, description));
}

Option Command::add_option(const std::string& names, int& value, const std::string& description) const {
  return Option(*command_->add_option(names, value, description));
}

Option Command::add_option(const std::string& names, int64_t& value, const std::string& description) const {
  return Option(*command_->add_option(names, value, description));
}

Option Command::add_option(const std::string& names, uint64_t& value, const std::string& description) const {
  return Option(*command_->add_option(names, value, description));
}

Option Command::add_option(const std::string& names, double& value, const std::string& description) const {
  return Option(*command_->add_option(names, value, description));
}

Option Command::add_option(const std::string& names, std::optional<double>& value,
                           const std::string& description) const {
  return Option(*command_->add_option(names, value, description));
}

Option Command::add_flag(const std::string& name, bool& value, const std::string& description) const {
  return Option(*command_->add_flag(name, value, description));
}

void Command::add_version(const std::string& name, const std::string& text) const {
  command_->set_version_flag(name, text);
}

void Command::require_command() const {
  command_->require_subcommand(1);
}

void Command::hide() const {
  command_->group("");
}

void Command::footer(const std::string& text) const {
  command_->footer(text);
}

void Command::on_chosen(std::function<void()> run) const {
  command_->callback(std::move(run));
}

std::string Command::name() const {
  return command_->get_name();
}

std::string Command::path() const {
  CLI::App* const parent = command_->get_parent();
  return parent == nullptr ? std::string() : Command(*parent).path() + " " + name();
}

std::string Command::description() const {
  return command_->get_description();
}

std::string Command::footer() const {
  return command_->get_footer();
}

std::string Command::help() const {
  // The formatter itself: CLI11's help() would go on to the command that was chosen, which may be another.
  return command_->get_formatter()->make_help(command_, "kiln" + path(), CLI::AppFormatMode::Normal);
}

Option Command::option(const std::string& name) const {
  return Option(*command_->get_option(name));
}

std::vector<Option> Command::options() const {
  return handles(command_->get_options());
}

std::vector<Option> Command::visible_options() const {
  return handles(command_->get_options(
      [](const CLI::Option* option) { return !option->get_positional() && !option->get_group().empty(); }));
}

std::vector<Option> Command::arguments() const {
  return handles(command_->get_options([](const CLI::Option* option) { return option->get_positional(); }));
}

std::vector<Command> Command::commands() const {
  return handles(command_->get_subcommands([](const CLI::App*) { return true; }));
}

std::vector<Command> Command::visible_commands() const {
  return handles(command_->get_subcommands([](const CLI::App* candidate) { return !candidate->get_group().empty(); }));
}

std::optional<Command> Command::command(const std::string& name) const {
  for (const Command below : commands()) {
    if (below.name() == name) return below;
  }
  return std::nullopt;
}

Command Command::reached() const {
  const std::vector<CLI::App*> parsed = command_->get_subcommands();
  return parsed.empty() ? *this : Command(*parsed.front()).reached();
}

std::vector<std::string> Command::left_over() const {
  return command_->remaining(true);
}

// --- CommandLine ---

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : program_(std::make_unique<CLI::App>(description, name)) {}

CommandLine::~CommandLine() = default;

std::optional<std::string> CommandLine::run(int argc, const char* const* argv) {
  try {
    program_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& asked_for) {
    std::ostringstream text;
    program_->exit(asked_for, text, text);
    return text.str();
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace kiln::cli
