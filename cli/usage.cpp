#include "usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "command_line.h"
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

int help(Command command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    // Commands that no list shows count too: who knows the name may ask.
    const std::optional<Command> named = command.command(word);
    if (!named) throw Error(ErrorCode::invalid_argument, unknown_command_message(command, word));
    command = *named;
  }
  fmt::print("{}", command.help());
  return success;
}

bool knows(Command command, const std::string& option) {
  const std::vector<Option> known = command.visible_options();
  return std::any_of(known.begin(), known.end(), [&](Option one) {
    const std::vector<std::string> names = one.spellings();
    return std::find(names.begin(), names.end(), option) != names.end();
  });
}

// The first command at or below `command` that takes `option`.
std::optional<Command> command_with(Command command, const std::string& option) {
  if (knows(command, option)) return command;
  for (const Command below : command.visible_commands()) {
    if (const std::optional<Command> found = command_with(below, option)) return found;
  }
  return std::nullopt;
}

std::string no_such_option(Command command, const std::string& name) {
  // One that the command has was left over because it came before the command.
  if (const std::optional<Command> taker = command_with(command, name)) {
    return fmt::format("{} stands too early: options come behind the command, `kiln{} {}`", name, taker->path(), name);
  }
  std::vector<std::string> names;
  constexpr size_t one_letter = 2;  // with its dash: any other is as near
  if (name.size() > one_letter) {
    for (const Option known : command.visible_options()) {
      for (const std::string& spelling : known.spellings()) names.push_back(spelling);
    }
  }
  return no_such("option", name, names, command.path());
}

}  // namespace

std::string unknown_command_message(Command app, const std::string& word) {
  std::vector<std::string> names;
  for (const Command command : app.visible_commands()) names.push_back(command.name());
  if (names.empty()) return fmt::format("`kiln{}` has no commands of its own, '{}' is too much", app.path(), word);
  return no_such("command", word, names, app.path());
}

std::string usage_message(Command app, const std::string& what) {
  const Command command = app.reached();
  const std::vector<std::string> left = app.left_over();
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word.front() == '-'; };
  // The first word that is not understood may explain the others: those of a command that is misspelt.
  if (!left.empty() && !is_option(left.front()) && !command.visible_commands().empty()) {
    return unknown_command_message(command, left.front());
  }
  const auto option = std::find_if(left.begin(), left.end(), is_option);
  if (option != left.end()) {
    return no_such_option(command, option->substr(0, option->find('=')));
  }
  if (left.empty() && !command.visible_commands().empty()) {
    std::vector<std::string> names;
    for (const Command below : command.visible_commands()) names.push_back(below.name());
    return fmt::format("`kiln{}` needs a command: {}\n      `kiln help{}` describes them", command.path(),
                       fmt::join(names, ", "), command.path());
  }
  if (left.empty()) return fmt::format("{}\n      `kiln help{}` says what it takes", what, command.path());
  if (command.arguments().empty()) {
    return fmt::format("`kiln{}` takes options alone, '{}' is too much: `kiln help{}` lists them", command.path(),
                       left.front(), command.path());
  }
  return fmt::format("`kiln{}` takes no further argument '{}': a request, and a name with blanks, belongs in quotes",
                     command.path(), left.front());
}

void add_help(Command app, int& exit_code) {
  auto words = std::make_shared<std::vector<std::string>>();
  const Command command = app.add_command("help", "describe a command and its options: `kiln help cache diff`");
  command.add_option("command", *words, "the command; without one, all are listed").type_name("COMMAND");
  command.on_chosen([app, words, &exit_code] { exit_code = help(app, *words); });
}

}  // namespace kiln::cli
