#include "manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <vector>

#include "checks.h"
#include "exit_codes.h"
#include "kiln/version.h"

namespace kiln::cli {
namespace {

using Visit = std::function<void(Command command, const std::string& path)>;

// Every command with its path: "tune", "cache", "cache diff".
void visit_commands(Command parent, const std::string& above, const Visit& visit) {
  for (const Command command : parent.visible_commands()) {
    const std::string path = above + command.name();
    visit(command, path);
    visit_commands(command, path + " ", visit);
  }
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// --- man ---

// As text of a page: nothing in it is taken for a command of roff, and hyphens can be copied.
std::string roff(const std::string& text) {
  std::string page = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  page = replaced(page, "\n", "\n\\&");
  return "\\&" + page;
}

std::string option_name(Option option) {
  std::string text = fmt::format("{}", fmt::join(option.spellings(), ", "));
  if (option.takes_value()) text += " " + option.type_name();
  return text;
}

std::string argument_names(Command command) {
  std::string text;
  for (const Option argument : command.arguments()) {
    text += argument.is_required() ? fmt::format(" {}", argument.name()) : fmt::format(" [{}]", argument.name());
  }
  return text;
}

std::string manual_of(Command command, const std::string& path) {
  std::string page =
      fmt::format(".SS {}\n{}.\n", roff("kiln " + path + argument_names(command)), roff(command.description()));
  for (const Option argument : command.arguments()) {
    page += fmt::format(".TP\n.I {}\n{}\n", roff(argument.name()), roff(argument.description()));
  }
  for (const Option option : command.visible_options()) {
    page += fmt::format(".TP\n.B {}\n{}\n", roff(option_name(option)), roff(option.description()));
  }
  if (!command.footer().empty()) page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.footer()));
  return page;
}

// --- completion ---

// In single quotes for a shell.
std::string shell_quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

// Words that its arguments by position may be, where they are known.
std::vector<std::string> words_of_arguments(Command command) {
  std::vector<std::string> words;
  for (const Option argument : command.arguments()) {
    for (const std::string& word : words_of(argument)) words.push_back(word);
  }
  return words;
}

std::string words_below(Command command) {
  std::vector<std::string> words;
  for (const Command below : command.visible_commands()) words.push_back(below.name());
  for (const Option option : command.visible_options()) {
    for (const std::string& name : option.spellings()) words.push_back(name);
  }
  for (const std::string& word : words_of_arguments(command)) words.push_back(word);
  return fmt::format("{}", fmt::join(words, " "));
}

// The cases of `"path option"` whose values are known.
std::string value_cases(Command command, const std::string& path) {
  std::string cases;
  for (const Option option : command.visible_options()) {
    const std::vector<std::string> words = words_of(option);
    if (words.empty()) continue;
    for (const std::string& name : option.spellings()) {
      cases += fmt::format("    {}) values={} ;;\n", shell_quoted(path + " " + name),
                           shell_quoted(fmt::format("{}", fmt::join(words, " "))));
    }
  }
  return cases;
}

// In a description of zsh's _arguments and _describe.
std::string zsh_text(const std::string& text) {
  return replaced(replaced(replaced(text, "[", "("), "]", ")"), ":", "\\:");
}

std::string zsh_option(Option option) {
  std::string lines;
  for (const std::string& name : option.spellings()) {
    std::string specification = fmt::format("*{}[{}]", name, zsh_text(option.description()));
    if (option.takes_value()) {
      const std::vector<std::string> words = words_of(option);
      specification += words.empty() ? ":value:_files" : fmt::format(":value:({})", fmt::join(words, " "));
    }
    lines += fmt::format("        {} \\\n", shell_quoted(specification));
  }
  return lines;
}

std::string zsh_case(Command command, const std::string& path) {
  const std::vector<Command> below = command.visible_commands();
  std::string text = fmt::format("    {})\n", shell_quoted(path));
  if (!below.empty()) {
    text += "      commands=(\n";
    for (const Command each : below) {
      text += fmt::format("        {}\n", shell_quoted(each.name() + ":" + zsh_text(each.description())));
    }
    text += "      )\n      _describe command commands\n";
  }
  text += "      _arguments \\\n";
  for (const Option option : command.visible_options()) text += zsh_option(option);
  const std::vector<std::string> words = words_of_arguments(command);
  std::string rest = below.empty() ? "*:file:_files" : "*: :";
  if (!words.empty()) rest = fmt::format("*:word:({})", fmt::join(words, " "));
  return text + fmt::format("        {} ;;\n", shell_quoted(rest));
}

}  // namespace

std::string manual_page(Command app) {
  std::string page = fmt::format(".TH KILN 1 \"\" \"Kiln {}\" \"User commands\"\n.SH NAME\nkiln \\- {}\n", version(),
                                 roff(app.description().substr(app.description().find(": ") + 2)));
  page += ".SH SYNOPSIS\n.B kiln\n.I COMMAND\n[\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]\n.SH OPTIONS\n";
  for (const Option option : app.visible_options()) {
    page += fmt::format(".TP\n.B {}\n{}\n", roff(option_name(option)), roff(option.description()));
  }
  page += ".SH COMMANDS\n";
  visit_commands(app, "", [&](Command command, const std::string& path) { page += manual_of(command, path); });
  page += ".SH EXIT STATUS\n";
  for (const ExitMeaning& meaning : exit_meanings()) {
    page += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(meaning.code), roff(std::string(meaning.words)));
  }
  page += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", roff(app.footer()));
  return page;
}

std::string bash_completion(Command app) {
  std::vector<std::string> paths;
  std::string words = fmt::format("    '') words={} ;;\n", shell_quoted(words_below(app)));
  std::string values;
  visit_commands(app, "", [&](Command command, const std::string& path) {
    paths.push_back(shell_quoted(path));
    words += fmt::format("    {}) words={} ;;\n", shell_quoted(path), shell_quoted(words_below(command)));
    values += value_cases(command, path);
  });
  return fmt::format(R"(# Completion of kiln(1) for bash. Made by `kiln completion bash`.
_kiln() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} path= words= values= i
  if [[ $current == = ]]; then current=; elif [[ $previous == = ]]; then previous=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "${{path:+$path }}${{COMP_WORDS[i]}}" in
      {}) path="${{path:+$path }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path $previous" in
{}  esac
  if [[ -n $values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$current"))
    return
  fi
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ -n $path && $current != -* ]] && COMPREPLY+=($(compgen -f -- "$current"))
  return 0
}}
complete -o filenames -F _kiln kiln
)",
                     fmt::join(paths, "|"), values, words);
}

std::string zsh_completion(Command app) {
  std::vector<std::string> paths;
  std::string cases = zsh_case(app, "");
  visit_commands(app, "", [&](Command command, const std::string& path) {
    paths.push_back(shell_quoted(path));
    cases += zsh_case(command, path);
  });
  return fmt::format(R"(#compdef kiln
# Completion of kiln(1) for zsh. Made by `kiln completion zsh`.
_kiln() {{
  local path_= i
  local -a commands
  for ((i = 2; i < CURRENT; ++i)); do
    case "${{path_:+$path_ }}${{words[i]}}" in
      {}) path_="${{path_:+$path_ }}${{words[i]}}" ;;
    esac
  done
  case "$path_" in
{}  esac
}}
_kiln "$@"
)",
                     fmt::join(paths, "|"), cases);
}

}  // namespace kiln::cli
