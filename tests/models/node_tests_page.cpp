#include "node_tests_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace kiln::test {
namespace {

using enum Outcome::Kind;

constexpr const char* introduction =
    R"(# ONNX's node tests

ONNX has a small test for each of its operators and their options: a model, inputs, and the outputs of its reference. The
tables have the outcomes of these tests by [whole models](models.md) on the emulated device. The tests are those of ONNX
1.12 (Debian's `libonnx-testdata`: the folders `node`, `simple`, `pytorch-operator` and `pytorch-converted`), with the
tolerance of ONNX's own runner (relative 1e-3, of bfloat16 2^-6; absolute 1e-7). Tensors of `double` are f32 on the
device, those of 64-bit integers i32, and booleans u8.

The tests give everything as inputs. A model is refused if the shape of a `Reshape` or the axes of a reduction are
inputs. Such a test runs once more with these as constants, as they are in networks: *with constants*.

Models of opset 6 (those of `pytorch-operator` and `pytorch-converted`) are first converted to opset 7 by ONNX's
converter.

`onnx_node_test` makes this page, and compares it: see [testing](testing.md#whole-models).
)";

std::string counts_of(const std::vector<Outcome>& outcomes) {
  const auto count = [&](Outcome::Kind kind) {
    return std::count_if(outcomes.begin(), outcomes.end(),
                         [&](const Outcome& outcome) { return outcome.kind == kind; });
  };
  return fmt::format(
      "\n| outcome | tests |\n| --- | --- |\n| passed | {} |\n| passed with constants | {} |\n| refused, with a reason "
      "| {} |\n"
      "| wrong | {} |\n",
      count(passed), count(passed_with_constants), count(refused), count(wrong));
}

std::string operators_of(const std::vector<NodeTest>& tests, const std::vector<Outcome>& outcomes) {
  std::map<std::string, std::map<Outcome::Kind, int>> operators;
  for (size_t i = 0; i < tests.size(); ++i) ++operators[tests[i].operation][outcomes[i].kind];
  std::string text =
      "\n## Operators\n\nTests of one node by its operator; *several*: models of more nodes, such as functions written "
      "out.\n\n"
      "| operator | passed | with constants | refused | wrong |\n| --- | --- | --- | --- | --- |\n";
  for (auto& [name, counts] : operators) {
    auto& kinds = counts;  // which a lambda can see
    const auto cell = [&](Outcome::Kind kind) {
      return kinds[kind] == 0 ? std::string() : std::to_string(kinds[kind]);
    };
    text += fmt::format("| {} | {} | {} | {} | {} |\n", name == "several" ? "*several*" : '`' + name + '`',
                        cell(passed), cell(passed_with_constants), cell(refused), cell(wrong));
  }
  return text;
}

/// A row for each text that tests of that kind have, the most frequent first.
std::string rows_of(const std::vector<NodeTest>& tests, const std::vector<Outcome>& outcomes, Outcome::Kind kind) {
  std::map<std::string, std::vector<std::string>> texts;
  for (size_t i = 0; i < tests.size(); ++i) {
    if (outcomes[i].kind == kind) texts[outcomes[i].text].push_back(tests[i].name);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> rows(texts.begin(), texts.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string text;
  for (const auto& [reason, names] : rows) text += fmt::format("| {} | `{}` |\n", reason, fmt::join(names, "` `"));
  return text;
}

}  // namespace

std::string page_of(const std::vector<NodeTest>& tests, const std::vector<Outcome>& outcomes) {
  std::string page = introduction + counts_of(outcomes) + operators_of(tests, outcomes) +
                     "\n## Refused\n\n| reason | tests |\n| --- | --- |\n" + rows_of(tests, outcomes, refused);
  if (const std::string faults = rows_of(tests, outcomes, wrong); !faults.empty()) {
    page += "\n## Wrong\n\n| what is wrong | tests |\n| --- | --- |\n" + faults;
  }
  return page;
}

std::map<std::string, std::string> refusals_on(const std::string& page) {
  std::map<std::string, std::string> reasons;
  std::istringstream lines(page.substr(std::min(page.size(), page.find("\n## Refused\n"))));
  for (std::string line; std::getline(lines, line);) {
    const size_t between = line.find(" | `");
    if (!line.starts_with("| ") || between == std::string::npos) continue;
    std::istringstream names(line.substr(between + 3));
    for (std::string name; names >> name;) {
      if (name.front() == '`') reasons[name.substr(1, name.size() - 2)] = line.substr(2, between - 2);
    }
  }
  return reasons;
}

}  // namespace kiln::test
