// Space and Config: the named parameters of an algorithm, their legal values, and one point among them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

/// One point of a Space: parameter values by name. Text form, names sorted: `PAD=1,ROWS=8,TILE=32`; `-` for a space
/// without parameters.
class Config {
 public:
  Config() = default;
  explicit Config(std::vector<std::pair<std::string, int64_t>> values);

  /// Throws Error(parse_error).
  static Config parse(std::string_view text);
  std::string print() const;

  std::optional<int64_t> find(std::string_view name) const;
  const std::vector<std::pair<std::string, int64_t>>& values() const { return values_; }
  bool operator==(const Config&) const = default;
  auto operator<=>(const Config&) const = default;

 private:
  std::vector<std::pair<std::string, int64_t>> values_;  // sorted by name
};

struct Parameter {
  std::string name;
  std::vector<int64_t> values;  ///< the first is the default
};

/// One value for each parameter of a Space, in the order of Space::parameters().
using Point = std::span<const int64_t>;

/// Which rules a point has to satisfy.
enum class Rules {
  all,
  necessary,  ///< Without those that only prune.
};

/// A named constraint. Its name is the refusal that a user reads. Binding::broken_rule() says where it holds.
struct Rule {
  std::string name;
  /// Keeps out points that work and cannot pay, such as tiles that are far larger than the problem.
  bool prunes = false;
};

/// The number of the first rule that a point breaks, in the order of Space::rules(); nothing if it breaks none.
using BrokenRule = std::function<std::optional<size_t>(Point)>;

/// The parameters of an algorithm and the names of its rules. The rules hold or not for one request on one target, so
/// the functions below are told by `broken`.
class Space {
 public:
  void add(Parameter parameter);
  void add(Rule rule);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Rule>& rules() const { return rules_; }
  /// Points before any rule.
  int64_t size() const;

  /// Why `config` is not a legal point here: `ROWS divides TILE (ROWS=32,TILE=16)`, or a missing, unknown or illegal
  /// parameter; nothing if it is legal. Values from outside (a pack, the command line) must pass this.
  std::optional<std::string> refusal(const Config& config, const BrokenRule& broken) const;
  /// Whether there is no refusal().
  bool is_legal(const Config& config, const BrokenRule& broken) const;

  /// Calls `visit` for every legal point, defaults first, the last parameter fastest; stops when it returns false.
  void for_each_legal(const BrokenRule& broken, const std::function<bool(const Config&)>& visit) const;

 private:
  std::vector<Parameter> parameters_;
  std::vector<Rule> rules_;
};

}  // namespace kiln
