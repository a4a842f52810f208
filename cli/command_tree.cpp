#include "command_tree.h"

namespace kiln::cli {

std::vector<const CLI::App*> visible_commands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* candidate) { return !candidate->get_group().empty(); });
}

std::vector<const CLI::Option*> visible_options(const CLI::App& command) {
  return command.get_options(
      [](const CLI::Option* option) { return !option->get_positional() && !option->get_group().empty(); });
}

std::vector<const CLI::Option*> arguments(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) {
  return option.get_type_size_max() > 0;
}

}  // namespace kiln::cli
