// The canonical line of a request: printing, parsing, and requests files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "kiln/base/error.h"
#include "kiln/base/nearest.h"
#include "kiln/generator/no_code.h"
#include "kiln/generator/operation.h"
#include "operations/operations.h"
#include "text_parsing.h"

namespace kiln {
namespace {

// The attribute's completed default: what the operation makes of a request that leaves it out.
bool has_default(const Request& request, const Operation& operation, const AttributeDefinition& definition) {
  Request bare = request;
  bare.attributes.clear();
  for (const AttributeDefinition& other : operation.attributes()) {
    const auto given = std::find_if(request.attributes.begin(), request.attributes.end(),
                                    [&](const Attribute& a) { return a.name == other.name; });
    const bool left_out = given == request.attributes.end() || other.name == definition.name;
    bare.attributes.push_back({other.name, left_out ? other.fallback : given->value});
  }
  operation.complete_attributes(bare);
  for (size_t i = 0; i < bare.attributes.size(); ++i) {
    if (bare.attributes[i].name != definition.name) continue;
    return std::any_of(request.attributes.begin(), request.attributes.end(),
                       [&](const Attribute& a) { return a == bare.attributes[i]; });
  }
  return false;
}

struct Token {
  std::string_view text;
  size_t column = 0;  // from 1

  std::string_view name() const { return text.substr(0, text.find('=')); }
  std::string_view value() const { return text.substr(std::min(text.size(), name().size() + 1)); }
  bool has_value() const { return name().size() < text.size(); }
};

std::vector<Token> tokenise(std::string_view line) {
  std::vector<Token> tokens;
  auto begin = line.begin();
  while ((begin = std::find_if_not(begin, line.end(), text::is_blank)) != line.end()) {
    const auto end = std::find_if(begin, line.end(), text::is_blank);
    tokens.push_back({{begin, end}, static_cast<size_t>(begin - line.begin()) + 1});
    begin = end;
  }
  return tokens;
}

[[noreturn]] void malformed(const Token& token, std::string_view what, std::string hint = {}) {
  throw Error(ErrorCode::parse_error, fmt::format("column {}: {}", token.column, what), std::move(hint));
}

Scale parse_scale(const Token& token) {
  if (const std::optional<Scale> scale = scale_called(token.value())) return *scale;
  malformed(token, fmt::format("{}={} is not 0, 1 or any", token.name(), token.value()), hint_of_class(token.name()));
}

std::vector<EpilogueStage> parse_epilogue(const Token& token) {
  std::vector<EpilogueStage> stages;
  for (std::string_view part : text::split(token.value(), '+')) {
    const auto found = std::find_if(all_stages.begin(), all_stages.end(),
                                    [&](EpilogueStage stage) { return part == to_string(stage); });
    if (found == all_stages.end()) {
      std::vector<std::string_view> known;
      for (const EpilogueStage stage : all_stages) known.push_back(to_string(stage));
      malformed(token, fmt::format("unknown epilogue stage '{}'", part),
                did_you_mean(part, known, fmt::format("known are {}", fmt::join(known, ", "))));
    }
    stages.push_back(*found);
  }
  return stages;
}

AttributeValue parse_attribute(const Token& token, const AttributeDefinition& definition) {
  if (std::holds_alternative<std::string>(definition.fallback) && !token.value().empty()) {
    return std::string(token.value());
  }
  std::vector<int64_t> ints;
  for (std::string_view part : text::split(token.value(), ',')) {
    const std::optional<int64_t> value = text::parse_int(part);
    if (!value && ints.empty() && token.value().find(',') == std::string_view::npos && !part.empty()) {
      return std::string(part);
    }
    if (!value) malformed(token, fmt::format("'{}' in {} is not an integer", part, token.text));
    ints.push_back(*value);
  }
  return ints;
}

TensorSpec parse_operand(const Token& token) {
  try {
    return TensorSpec::parse(token.value());
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("column {}: {}", token.column, error.message()), error.hint());
  }
}

constexpr std::string_view user_code_prefix = "user:";

// user:NAME or user:<digest>.
UserCode parse_user_code(const Token& token, const Expressions& expressions) {
  const std::string_view name = token.value().substr(user_code_prefix.size());
  if (const auto found = expressions.find(name); found != expressions.end()) return UserCode(found->second);
  if (!is_expression_digest(name)) {
    malformed(token, fmt::format("there is no expression '{}'", name),
              "define it in the requests file or in a file given with --expression, or give it to Request::parse()");
  }
  for (const auto& [known, expression] : expressions) {
    if (expression.digest() == name) return UserCode(expression);
  }
  return UserCode(std::string(name));
}

// The names of its common words, those with a value or those without.
std::vector<std::string_view> common_names(const Operation& operation, bool with_value) {
  std::vector<std::string_view> names;
  for (const CommonWord& word : common_words(operation)) {
    if (word.values.empty() != with_value) names.push_back(word.name);
  }
  return names;
}

// Names similar to one that the operation does not know; else all that it takes.
std::string names_hint(const Operation& operation, std::string_view name) {
  std::vector<std::string_view> names;
  for (const OperandDefinition& operand : operation.operands()) names.push_back(operand.name);
  for (const AttributeDefinition& attribute : operation.attributes()) names.push_back(attribute.name);
  const std::string own = fmt::format("it takes {} (docs/request-syntax.md)", fmt::join(names, ", "));
  for (const std::string_view word : common_names(operation, true)) names.push_back(word);
  return did_you_mean(name, names, own);
}

// Tokens that mean the same for every operation. Returns whether `token` was one.
bool parse_common(const Token& token, const Operation& operation, const Expressions& expressions, Request& request) {
  const std::string_view name = token.name();
  if (!token.has_value()) {
    if (name == "tf32")
      request.arithmetic.tf32 = true;
    else if (name == "fast")
      request.arithmetic.fast = true;
    else if (name == "deterministic")
      request.arithmetic.deterministic = true;
    else if (name == "constant_weights")
      request.constant_weights = true;
    else if (name == "batch_invariant")
      request.batch_invariant = true;
    else if (find_operation(name) != nullptr)
      malformed(token, fmt::format("a second request begins: '{}'", name), "give one request");
    else
      malformed(token, fmt::format("'{}' has no value", name),
                did_you_mean(name, common_names(operation, false), "write name=value"));
    return true;
  }
  if (name == "alpha")
    request.blend.alpha = parse_scale(token);
  else if (name == "beta")
    request.blend.beta = parse_scale(token);
  else if (name == "epilogue" && token.value().starts_with(user_code_prefix))
    request.user_code = parse_user_code(token, expressions);
  else if (name == "epilogue")
    request.epilogue = parse_epilogue(token);
  else if (name == "n" && token.value() == "?")
    request.dynamic_batch = true;
  else if (name == "n")
    malformed(token, fmt::format("n={} is no dynamic batch", token.value()),
              "write n=?; a fixed batch is the first extent of the operands");
  else if (name == "acc" && token.value() == "f32")
    return true;
  else if (name == "acc")
    malformed(token, fmt::format("acc={} is unknown", token.value()), "f32 is the only value");
  else
    return false;
  return true;
}

[[noreturn]] void refuse_unknown(const Token& token, const Operation& operation) {
  const std::string_view name = token.name();
  const std::vector<std::string_view> bare = common_names(operation, false);
  if (std::find(bare.begin(), bare.end(), name) != bare.end()) {
    malformed(token, fmt::format("'{}' takes no value", name), fmt::format("write {} alone, or leave it out", name));
  }
  if (const std::string_view kind = kind_given_at_call(operation, name); !kind.empty()) {
    malformed(token, fmt::format("the request holds the call's {} {}", kind, name),
              fmt::format("leave it out, and {}", hint_of_call(kind, name)));
  }
  malformed(token, fmt::format("{} has no operand or attribute '{}'", operation.name(), name),
            names_hint(operation, name));
}

void parse_token(const Token& token, const Operation& operation, const Expressions& expressions, Request& request) {
  if (parse_common(token, operation, expressions, request)) return;
  const auto named = [&](const auto& definition) { return definition.name == token.name(); };
  if (is_user_operand(token.name()) || std::any_of(operation.operands().begin(), operation.operands().end(), named)) {
    request.operands.push_back({std::string(token.name()), parse_operand(token)});
    return;
  }
  const auto attribute = std::find_if(operation.attributes().begin(), operation.attributes().end(), named);
  if (attribute == operation.attributes().end()) refuse_unknown(token, operation);
  request.attributes.push_back({attribute->name, parse_attribute(token, *attribute)});
}

// Every operand that a call takes stands in the line, but for the usual one of an epilogue's stage, which
// `epilogue=bias` names.
void print_operands(const Request& request, const Operation& operation, std::string& line) {
  for (const OperandDefinition& definition : operation.operands()) {
    const TensorSpec* spec = request.find(definition.name);
    if (spec == nullptr) continue;
    const bool of_a_stage = definition.name == "bias" || definition.name == "residual";
    if (of_a_stage && operation.implied_operand(request, definition.name) == *spec) continue;
    line += fmt::format(" {}={}", definition.name, spec->print());
  }
}

void print_attributes(const Request& request, const Operation& operation, std::string& line) {
  for (const AttributeDefinition& definition : operation.attributes()) {
    for (const Attribute& attribute : request.attributes) {
      if (attribute.name != definition.name) continue;
      if (definition.printing == Printing::when_set && has_default(request, operation, definition)) continue;
      line += fmt::format(" {}={}", attribute.name, attribute_text(attribute.value));
    }
  }
}

// Reads the words of `line`, each by `parse_word`.
template <class ParseWord>
Request parse_words(std::string_view line, const ParseWord& parse_word) {
  const std::vector<Token> tokens = tokenise(line);
  if (tokens.empty()) {
    throw Error(ErrorCode::parse_error, "the request is empty",
                "write for example: softmax_forward x=f32:1x1000:nc axis=1");
  }
  const Operation* definition = find_operation(tokens.front().text);
  if (definition == nullptr) {
    const std::string_view name = tokens.front().text;
    malformed(tokens.front(), fmt::format("unknown operation '{}'", name), hint_of_unknown(name));
  }
  Request request;
  request.operation = std::string(definition->name());
  for (size_t i = 1; i < tokens.size(); ++i) {
    for (size_t j = 1; j < i; ++j) {
      if (tokens[i].name() == tokens[j].name()) malformed(tokens[i], fmt::format("{} stands twice", tokens[i].name()));
    }
    parse_word(tokens[i], *definition, request);
  }
  return request;
}

// Before the word is read: a call has its user code elsewhere, and so knows no expressions by their names.
void refuse_argument(const Token& word, const Operation& operation) {
  const auto refuse = [&](std::string_view what, std::string_view hint) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: the text of a call has {}", operation.name(), what),
                std::string(hint));
  };
  const std::string_view name = word.name();
  if (is_user_operand(name) || (name == "epilogue" && word.value().starts_with(user_code_prefix))) {
    refuse("user code", "give it in the options, as their epilogue");
  }
  if (std::ranges::find(operation.operands(), name, &OperandDefinition::name) != operation.operands().end()) {
    refuse(fmt::format("operand {}", name), "give the tensor by name");
  }
  const auto is_class = [&](std::string_view alpha, std::string_view beta) { return name == alpha || name == beta; };
  bool of_a_blend = is_class("alpha", "beta");
  for (const FurtherBlend& blend : operation.further_blends()) {
    of_a_blend |= is_class(fmt::format("{}_alpha", blend.name), fmt::format("{}_beta", blend.name));
  }
  if (of_a_blend) refuse(fmt::format("the class {}", name), "give the number by name");
}

// Takes an optional last ` *3` off `line`, whose tokens these are. Returns the number; 1 where there is none.
int64_t take_count(std::string_view& line, const std::vector<Token>& tokens) {
  if (tokens.empty() || !tokens.back().text.starts_with('*')) return 1;
  const Token& last = tokens.back();
  const std::optional<int64_t> count = text::parse_int(last.text.substr(1));
  if (!count || *count < 1) malformed(last, fmt::format("'{}' is not a count", last.text), "write for example *3");
  line = line.substr(0, last.column - 1);
  return *count;
}

}  // namespace

std::string attribute_text(const AttributeValue& value) {
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) return text::join(*ints, ",");
  return std::get<std::string>(value);
}

std::vector<CommonWord> common_words(const Operation& operation) {
  std::vector<CommonWord> words;
  if (operation.has_arithmetic()) {
    words = {
        {"acc", "f32", "f32", "the type of sums"},
        {"tf32", "", "not permitted", "permits kernels to round the factors of f32 products to tf32"},
        {"fast", "", "not permitted",
         "permits products, and sums of up to 32 of them, in the storage type; for f32 it permits Winograd's "
         "transforms, whose errors are larger and which spread infinities within a tile"},
        {"deterministic", "", "not demanded", "demands equal bits from equal inputs on one device"},
    };
  }
  if (operation.has_weights()) {
    words.push_back({"constant_weights", "", "each call brings its own",
                     "the weights stay the same, and a plan prepares them once: times are of calls after that"});
  }
  if (operation.has_order_of_sums()) {
    words.push_back({"batch_invariant", "", "not demanded",
                     "demands that the result of an image, or of a row, has the same bits in every batch: all variants "
                     "add in one order"});
  }
  if (operation.has_blend()) {
    words.push_back({"alpha", "0, 1, any", "1",
                     "the class of the scale of the result. any: the call gives the value. 0: the operation is not "
                     "computed, and even NaN gives 0"});
    words.push_back(
        {"beta", "0, 1, any", "0", "the class of the scale of what the result held before. 0: that is never read"});
  }
  std::string epilogues = "user:NAME";
  if (!operation.stages().empty()) {
    std::vector<std::string_view> stages;
    for (const EpilogueStage stage : operation.stages()) stages.push_back(to_string(stage));
    epilogues = fmt::format("{}, joined with +; or {}", fmt::join(stages, ", "), epilogues);
  }
  words.push_back({"epilogue", epilogues, "nothing is applied",
                   "what is applied to the result: stages in the order written, or user code (docs/user-code.md)"});
  words.push_back({"n", "?", "a fixed batch",
                   "a dynamic batch: the call gives it. The batch of the line, rounded up to a power of two, but to no "
                   "more than the strides leave room for, is the bucket; one compiled kernel serves every batch from 0 "
                   "to that"});
  return words;
}

std::string Request::key() const {
  const Operation& definition = kiln::operation(operation);
  std::string line = operation;
  print_operands(*this, definition, line);
  print_attributes(*this, definition, line);
  if (definition.has_arithmetic()) line += " acc=f32";
  if (arithmetic.tf32) line += " tf32";
  if (arithmetic.fast) line += " fast";
  if (arithmetic.deterministic) line += " deterministic";
  if (constant_weights) line += " constant_weights";
  if (batch_invariant) line += " batch_invariant";
  if (blend.alpha != Scale::one) line += fmt::format(" alpha={}", to_string(blend.alpha));
  if (blend.beta != Scale::zero) line += fmt::format(" beta={}", to_string(blend.beta));
  if (!epilogue.empty()) {
    std::vector<std::string_view> stages;
    for (EpilogueStage stage : epilogue) stages.push_back(to_string(stage));
    line += fmt::format(" epilogue={}", fmt::join(stages, "+"));
  }
  if (user_code) line += fmt::format(" epilogue={}{}", user_code_prefix, user_code.digest());
  for (const Operand& operand : operands) {
    if (is_user_operand(operand.name)) line += fmt::format(" {}={}", operand.name, operand.spec.print());
  }
  if (dynamic_batch) line += " n=?";
  return line;
}

Request Request::parse(std::string_view line, const Expressions& expressions) {
  return finished(parse_words(line, [&](const Token& word, const Operation& definition, Request& request) {
    parse_token(word, definition, expressions, request);
  }));
}

Request Request::parse_call(std::string_view text) {
  return parse_words(text, [](const Token& word, const Operation& definition, Request& request) {
    refuse_argument(word, definition);
    parse_token(word, definition, {}, request);
  });
}

std::string_view operation_named_in(std::string_view line) {
  const auto begin = std::ranges::find_if_not(line, text::is_blank);
  return {begin, std::find_if(begin, line.end(), text::is_blank)};
}

std::string_view without_count(std::string_view line) {
  (void)take_count(line, tokenise(line));
  return line;
}

namespace {

RequestLine parse_request_line(std::string_view line, const std::vector<Token>& tokens,
                               const Expressions& expressions) {
  RequestLine entry;
  entry.count = take_count(line, tokens);
  entry.request = Request::parse(line, expressions);
  return entry;
}

/// Text behind the word `expression` of a definition's first line; nothing if the line is none.
std::optional<std::string_view> heading_of(std::string_view line) {
  constexpr std::string_view word = "expression";
  const bool begins = line.starts_with(word) && (line.size() == word.size() || text::is_blank(line[word.size()]));
  return begins ? std::optional(text::trimmed(line.substr(word.size()))) : std::nullopt;
}

std::vector<std::string> parse_names(std::string_view list) {
  std::vector<std::string> names;
  if (text::trimmed(list).empty()) return names;
  for (std::string_view name : text::split(list, ',')) names.emplace_back(text::trimmed(name));
  return names;
}

// The first line of a definition: `expression NAME(tensors; scalars)`, both lists and the brackets maybe left out.
struct Heading {
  std::string name;
  std::vector<std::string> tensors, scalars;

  explicit Heading(std::string_view rest) {
    const size_t open = std::min(rest.find('('), rest.size());
    name = text::trimmed(rest.substr(0, open));
    if (!text::is_definition_name(name) || (open < rest.size() && rest.back() != ')')) {
      throw Error(ErrorCode::parse_error, fmt::format("'expression {}' does not begin a definition", rest),
                  "write expression NAME(tensor, ...; scalar, ...)");
    }
    if (open == rest.size()) return;
    const std::string_view lists = rest.substr(open + 1, rest.size() - open - 2);
    const size_t semicolon = std::min(lists.find(';'), lists.size());
    tensors = parse_names(lists.substr(0, semicolon));
    if (semicolon < lists.size()) scalars = parse_names(lists.substr(semicolon + 1));
  }
};

// Takes a definition in whose first line, lines[at], has `rest` behind its word; returns the number of its last line.
size_t parse_definition(const std::vector<std::string_view>& lines, size_t at, std::string_view rest,
                        Expressions& expressions) {
  const Heading heading(rest);
  std::string code;
  for (size_t i = at + 1; i < lines.size(); ++i) {
    if (text::trimmed(lines[i]) != text::definition_end) {
      code.append(lines[i]).append("\n");
      continue;
    }
    Expression expression(code, heading.tensors, heading.scalars);
    if (is_expression_digest(heading.name) && heading.name != expression.digest()) {
      throw Error(ErrorCode::parse_error, fmt::format("expression {} is not what its name says", heading.name),
                  "the text was changed: give it a name of its own");
    }
    if (const auto [known, added] = expressions.emplace(heading.name, expression);
        !added && known->second != expression) {
      throw Error(ErrorCode::parse_error, fmt::format("expression {} is defined twice", heading.name),
                  "choose another name");
    }
    return i;
  }
  throw Error(ErrorCode::parse_error, fmt::format("the definition of expression {} does not end", heading.name),
              fmt::format("write '{}' in a line of its own", text::definition_end));
}

}  // namespace

std::vector<RequestLine> parse_requests(std::string_view text, Expressions& expressions) {
  std::vector<RequestLine> entries;
  const std::vector<std::string_view> lines = text::split(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t first = i;
    try {
      if (const auto rest = heading_of(lines[i])) {
        i = parse_definition(lines, i, *rest, expressions);
        continue;
      }
      const std::string_view line = lines[i].substr(0, lines[i].find('#'));
      const std::vector<Token> tokens = tokenise(line);
      if (!tokens.empty()) entries.push_back(parse_request_line(line, tokens, expressions));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("line {}: {}", first + 1, error.message()), error.hint());
    }
  }
  return entries;
}

void require_no_code(std::string_view requests, std::string hint) {
  const std::vector<std::string_view> lines = text::split(requests, '\n');
  const auto found = std::ranges::find_if(lines, [](std::string_view line) { return heading_of(line).has_value(); });
  if (found == lines.end()) return;
  const std::string_view rest = *heading_of(*found);
  const std::string_view what = text::trimmed(rest.substr(0, rest.find('(')));
  throw Error(ErrorCode::invalid_argument,
              fmt::format("line {}: user code is refused here: the definition of expression {}",
                          found - lines.begin() + 1, what),
              std::move(hint));
}

std::vector<RequestLine> parse_requests(std::string_view text) {
  Expressions none;
  return parse_requests(text, none);
}

}  // namespace kiln
