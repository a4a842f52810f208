// The canonical line of a request: printing, parsing, and requests files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "text.h"

namespace kiln {
namespace {

std::string print(const AttributeValue& value) {
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) return text::join(*ints, ",");
  return std::get<std::string>(value);
}

std::string_view print(Scale scale) {
  switch (scale) {
    case Scale::zero:
      return "0";
    case Scale::one:
      return "1";
    case Scale::any:
      return "any";
  }
  return "?";
}

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
  size_t start = 0;
  while ((start = line.find_first_not_of(" \t", start)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(" \t", start), line.size());
    tokens.push_back({line.substr(start, end - start), start + 1});
    start = end;
  }
  return tokens;
}

[[noreturn]] void malformed(const Token& token, std::string_view what, std::string hint = {}) {
  throw Error(ErrorCode::parse_error, fmt::format("column {}: {}", token.column, what), std::move(hint));
}

Scale parse_scale(const Token& token) {
  for (Scale scale : {Scale::zero, Scale::one, Scale::any}) {
    if (token.value() == print(scale)) return scale;
  }
  malformed(token, fmt::format("{}={} is not 0, 1 or any", token.name(), token.value()),
            "the value itself is given at the call");
}

std::vector<EpilogueStage> parse_epilogue(const Token& token) {
  std::vector<EpilogueStage> stages;
  for (std::string_view part : text::split(token.value(), '+')) {
    bool known = false;
    for (EpilogueStage stage : {EpilogueStage::bias, EpilogueStage::add, EpilogueStage::relu, EpilogueStage::clip}) {
      if (part != to_string(stage)) continue;
      stages.push_back(stage);
      known = true;
    }
    if (!known) malformed(token, fmt::format("unknown epilogue stage '{}'", part), "known are bias, add, relu, clip");
  }
  return stages;
}

AttributeValue parse_attribute(const Token& token) {
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

// Tokens that mean the same for every operation. Returns whether `token` was one.
bool parse_common(const Token& token, Request& request) {
  const std::string_view name = token.name();
  if (!token.has_value()) {
    if (name == "tf32")
      request.arithmetic.tf32 = true;
    else if (name == "fast")
      request.arithmetic.fast = true;
    else if (name == "deterministic")
      request.arithmetic.deterministic = true;
    else
      malformed(token, fmt::format("'{}' has no value", name), "write name=value");
    return true;
  }
  if (name == "alpha")
    request.blend.alpha = parse_scale(token);
  else if (name == "beta")
    request.blend.beta = parse_scale(token);
  else if (name == "epilogue")
    request.epilogue = parse_epilogue(token);
  else if (name == "n" && token.value() == "?")
    request.dynamic_batch = true;
  else if (name == "acc" && token.value() == "f32")
    return true;
  else if (name == "acc")
    malformed(token, fmt::format("acc={} is unknown", token.value()), "sums are in f32: acc=f32");
  else
    return false;
  return true;
}

void parse_token(const Token& token, const Operation& operation, Request& request) {
  if (parse_common(token, request)) return;
  const auto named = [&](const auto& definition) { return definition.name == token.name(); };
  if (std::any_of(operation.operands().begin(), operation.operands().end(), named)) {
    request.operands.push_back({std::string(token.name()), parse_operand(token)});
  } else if (std::any_of(operation.attributes().begin(), operation.attributes().end(), named)) {
    request.attributes.push_back({std::string(token.name()), parse_attribute(token)});
  } else {
    malformed(token, fmt::format("{} has no operand or attribute '{}'", operation.name(), token.name()),
              "docs/request-syntax.md lists them");
  }
}

void print_operands(const Request& request, const Operation& operation, std::string& line) {
  for (const OperandDefinition& definition : operation.operands()) {
    const TensorSpec* spec = request.find(definition.name);
    if (spec == nullptr) continue;
    if (definition.printing == Printing::when_set && operation.implied_operand(request, definition.name) == *spec)
      continue;
    line += fmt::format(" {}={}", definition.name, spec->print());
  }
}

void print_attributes(const Request& request, const Operation& operation, std::string& line) {
  for (const AttributeDefinition& definition : operation.attributes()) {
    for (const Attribute& attribute : request.attributes) {
      if (attribute.name != definition.name) continue;
      if (definition.printing == Printing::when_set && has_default(request, operation, definition)) continue;
      line += fmt::format(" {}={}", attribute.name, print(attribute.value));
    }
  }
}

}  // namespace

std::string Request::key() const {
  const Operation& definition = kiln::operation(operation);
  std::string line = operation;
  print_operands(*this, definition, line);
  print_attributes(*this, definition, line);
  if (definition.has_arithmetic()) line += " acc=f32";
  if (arithmetic.tf32) line += " tf32";
  if (arithmetic.fast) line += " fast";
  if (arithmetic.deterministic) line += " deterministic";
  if (blend.alpha != Scale::one) line += fmt::format(" alpha={}", print(blend.alpha));
  if (blend.beta != Scale::zero) line += fmt::format(" beta={}", print(blend.beta));
  if (!epilogue.empty()) {
    std::vector<std::string_view> stages;
    for (EpilogueStage stage : epilogue) stages.push_back(to_string(stage));
    line += fmt::format(" epilogue={}", fmt::join(stages, "+"));
  }
  if (dynamic_batch) line += " n=?";
  return line;
}

Request Request::parse(std::string_view line) {
  const std::vector<Token> tokens = tokenise(line);
  if (tokens.empty()) {
    throw Error(ErrorCode::parse_error, "the request is empty",
                "write for example: softmax_forward x=f32:1x1000:nc axis=1");
  }
  const Operation* definition = find_operation(tokens.front().text);
  if (definition == nullptr) {
    std::vector<std::string_view> known;
    for (const Operation* candidate : operations()) known.push_back(candidate->name());
    malformed(tokens.front(), fmt::format("unknown operation '{}'", tokens.front().text),
              fmt::format("known are {}", fmt::join(known, ", ")));
  }
  Request request;
  request.operation = std::string(definition->name());
  for (size_t i = 1; i < tokens.size(); ++i) {
    for (size_t j = 1; j < i; ++j) {
      if (tokens[i].name() == tokens[j].name()) malformed(tokens[i], fmt::format("{} stands twice", tokens[i].name()));
    }
    parse_token(tokens[i], *definition, request);
  }
  return finished(std::move(request));
}

std::vector<RequestLine> parse_requests(std::string_view text) {
  std::vector<RequestLine> lines;
  size_t number = 0;
  for (std::string_view line : text::split(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::vector<Token> tokens = tokenise(line);
    if (tokens.empty()) continue;
    try {
      RequestLine entry;
      if (const Token& last = tokens.back(); last.text.starts_with('*')) {
        const std::optional<int64_t> count = text::parse_int(last.text.substr(1));
        if (!count || *count < 1)
          malformed(last, fmt::format("'{}' is not a count", last.text), "write for example *3");
        entry.count = *count;
        line = line.substr(0, last.column - 1);
      }
      entry.request = Request::parse(line);
      lines.push_back(std::move(entry));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("line {}: {}", number, error.message()), error.hint());
    }
  }
  return lines;
}

}  // namespace kiln
