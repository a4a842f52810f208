#include "usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "command_tree.h"
#include "commands.h"
#include "kiln/base/error.h"
#include "kiln/base/nearest.h"

namespace kiln::cli {
namespace {

// "there is no command 'tun': did you mean tune? `kiln help` lists them".
std::string no_such(std::string_view what, const std::string& word, const std::vector<std::string>& names,
                    const std::string& where) {
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::string meant = did_you_mean(word, known);
  if (!meant.empty()) meant += " ";
  return fmt::format("there is no {} '{}': {}`kiln help{}` lists them", what, word, meant, where);
}

// The names of the commands from the program to `command`: "", " tune", " cache diff".
std::string path_to(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent == nullptr ? std::string() : path_to(*parent) + " " + command.get_name();
}

// The command that was reached.
const CLI::App& reached(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? app : reached(*parsed.front());
}

int help(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    // Commands that no list shows count too: who knows the name may ask.
    const std::vector<const CLI::App*> named =
        command->get_subcommands([&](const CLI::App* candidate) { return candidate->check_name(word); });
    if (named.empty()) throw Error(ErrorCode::invalid_argument, unknown_command_message(*command, word));
    command = named.front();
  }
  // The formatter itself: help() would go on to the command that was chosen, which is this one.
  fmt::print("{}",
             command->get_formatter()->make_help(command, "kiln" + path_to(*command), CLI::AppFormatMode::Normal));
  return success;
}

bool knows(const CLI::App& command, const std::string& option) {
  const std::vector<const CLI::Option*> known = visible_options(command);
  return std::any_of(known.begin(), known.end(), [&](const CLI::Option* one) {
    const std::vector<std::string> names = spellings(*one);
    return std::find(names.begin(), names.end(), option) != names.end();
  });
}

// The first command at or below `command` that takes `option`; null if none does.
const CLI::App* command_with(const CLI::App& command, const std::string& option) {
  if (knows(command, option)) return &command;
  for (const CLI::App* below : visible_commands(command)) {
    if (const CLI::App* found = command_with(*below, option)) return found;
  }
  return nullptr;
}

std::string no_such_option(const CLI::App& command, const std::string& name) {
  // One that the command has was left over because it came before the command.
  if (const CLI::App* const taker = command_with(command, name)) {
    return fmt::format("{} stands too early: options come behind the command, `kiln{} {}`", name, path_to(*taker),
                       name);
  }
  std::vector<std::string> names;
  for (const CLI::Option* known : visible_options(command)) {
    for (const std::string& spelling : spellings(*known)) names.push_back(spelling);
  }
  return no_such("option", name, names, path_to(command));
}

}  // namespace

std::string unknown_command_message(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : visible_commands(app)) names.push_back(command->get_name());
  if (names.empty()) return fmt::format("`kiln{}` has no commands of its own, '{}' is too much", path_to(app), word);
  return no_such("command", word, names, path_to(app));
}

std::string usage_message(const CLI::App& app, const std::string& what) {
  const CLI::App& command = reached(app);
  const std::vector<std::string> left = app.remaining(true);
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word.front() == '-'; };
  const auto option = std::find_if(left.begin(), left.end(), is_option);
  if (option != left.end()) {
    return no_such_option(command, option->substr(0, option->find('=')));
  }
  if (left.empty()) return fmt::format("{}\n      `kiln help{}` says what it takes", what, path_to(command));
  if (!visible_commands(command).empty()) return unknown_command_message(command, left.back());
  return fmt::format("`kiln{}` takes no further argument '{}': a request, and a name with blanks, belongs in quotes",
                     path_to(command), left.back());
}

void add_help(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "describe a command and its options: `kiln help cache diff`");
  command->add_option("command", *words, "the command; without one, all are listed")->type_name("COMMAND");
  command->callback([&app, words, &exit_code] { exit_code = help(app, *words); });
}

}  // namespace kiln::cli
