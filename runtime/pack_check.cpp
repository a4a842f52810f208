#include "kiln/runtime/pack_check.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "plausible_time.h"

namespace kiln {
namespace {

using Refused = std::optional<std::string>;

// The NVRTC that a record names, "13.0"; programs may depend on it.
void set_nvrtc(Target& target, const std::string& version) {
  const char* const end = version.data() + version.size();
  const auto [dot, error] = std::from_chars(version.data(), end, target.nvrtc_major);
  const bool read = error == std::errc() && dot != end && *dot == '.' &&
                    std::from_chars(dot + 1, end, target.nvrtc_minor).ptr == end && target.nvrtc_major > 0;
  if (!read) throw Error(ErrorCode::parse_error, fmt::format("NVRTC version {} is not MAJOR.MINOR", version));
}

// `request` with code of which only the digest is known replaced by some that reads the same tensors. Programs made of
// it are the same but for the source.
Request with_stand_in(Request request) {
  std::vector<std::string> tensors;
  std::string prologue;
  for (const Operand& operand : request.operands) {
    if (is_epilogue_operand(operand.name)) tensors.push_back(operand.name.substr(user_epilogue_prefix.size()));
    if (!is_prologue_operand(operand.name)) continue;
    tensors.push_back(operand.name.substr(user_prologue_prefix.size()));
    prologue += fmt::format("{} + {}", prologue.empty() ? "--- prologue\nx" : "", tensors.back());
  }
  if (!prologue.empty()) prologue += "\n---\n";
  request.user_code = UserCode(Expression(prologue + "acc", std::move(tensors)));
  return request;
}

class PackJudge {
 public:
  PackJudge(const Catalogue& catalogue, Expressions expressions)
      : catalogue_(catalogue), expressions_(std::move(expressions)) {}

  Refused request(std::string_view line) {
    request_ = Request::parse(line, expressions_);
    const std::string key = request_.key();
    stands_in_ = lacks_user_text(request_);
    if (stands_in_) request_ = with_stand_in(std::move(request_));
    if (key == line) return std::nullopt;
    return fmt::format("the request is not canonical, expected: {}", key);
  }

  Refused record(const cache::DeviceEntry& device, const cache::Record& record) const {
    const Choice choice{record.algorithm, Config::parse(record.config)};
    if (choice.config.print() != record.config) {
      return fmt::format("the configuration is not canonical, expected: {}", choice.config.print());
    }
    const bool current = catalogue_.digest(record.algorithm) == record.algorithm_digest;
    if (!current || record.outcome == cache::outcome::refused) return std::nullopt;
    Target target{Arch::of(device.cc_major, device.cc_minor), 0, 0};
    if (cache::usable(record) && record.kind != cache::TimeKind::predicted) {
      if (Refused reason = impossible_time(request_, target.arch, device.id, record.seconds)) return reason;
    }
    set_nvrtc(target, record.nvrtc_version);
    Variants variants = catalogue_.on(request_, target);
    if (Refused reason = variants.refusal(choice)) return adds_in_another_order(target, choice) ? std::nullopt : reason;
    return differs(variants.program(choice), record, stands_in_);
  }

 private:
  // The order of sums of all batches is chosen by estimates of all algorithms: a library with others may have another
  // one, and passes such a record over as it does stale ones.
  bool adds_in_another_order(const Target& target, const Choice& choice) const {
    if (!request_.batch_invariant) return false;
    Request without = request_;
    without.batch_invariant = false;
    return !catalogue_.refusal(std::move(without), target, choice);
  }

  static Refused differs(const Program& program, const cache::Record& record, bool other_source) {
    const bool failed = !cache::usable(record);
    if (!failed && record.workspace_bytes != program.workspace_bytes) {
      return fmt::format("its workspace of {} bytes is not the {} bytes that the variant needs", record.workspace_bytes,
                         program.workspace_bytes);
    }
    if (!failed && record.deterministic != program.deterministic) {
      return fmt::format("the variant is{} bitwise reproducible", program.deterministic ? "" : " not");
    }
    if (other_source) return std::nullopt;
    const std::string digest = program.digest();
    // A record for which no program was made has no source digest.
    if ((failed || record.kind == cache::TimeKind::predicted) && record.source_digest.empty()) return std::nullopt;
    if (record.source_digest == digest) return std::nullopt;
    return fmt::format("its source digest {} is not {}, that of the source which this library makes",
                       record.source_digest, digest);
  }

  const Catalogue& catalogue_;
  const Expressions expressions_;
  Request request_;         // of the records that follow
  bool stands_in_ = false;  // request_ has other user code than they
};

template <class Ask>
Refused refusal_of(const Ask& ask) {
  try {
    return ask();
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

cache::IsCurrent is_current(const Catalogue& catalogue) {
  return [&catalogue](std::string_view algorithm, std::string_view digest) {
    return catalogue.digest(algorithm) == digest;
  };
}

cache::IsCurrent is_not_replaced(const Catalogue& catalogue) {
  return [&catalogue](std::string_view algorithm, std::string_view digest) {
    return catalogue.find(algorithm) == nullptr || catalogue.digest(algorithm) == digest;
  };
}

cache::PackValidator pack_validator(const Catalogue& catalogue, Expressions expressions) {
  const auto judge = std::make_shared<PackJudge>(catalogue, std::move(expressions));
  cache::PackValidator validator;
  validator.request = [judge](std::string_view line) { return refusal_of([&] { return judge->request(line); }); };
  validator.record = [judge](const cache::DeviceEntry& device, const cache::Record& record) {
    return refusal_of([&] { return judge->record(device, record); });
  };
  return validator;
}

std::optional<std::string> unknown_user_code(std::string_view line, const Expressions& expressions) {
  try {
    const Request request = Request::parse(line, expressions);
    if (lacks_user_text(request)) return request.user_code.digest();
  } catch (const Error&) {
    // It is no request.
  }
  return std::nullopt;
}

NotAtHand not_at_hand(const cache::Pack& contents, const Catalogue& catalogue, const Expressions& expressions) {
  NotAtHand result;
  std::string_view line;
  std::optional<std::string> unknown;
  for (const cache::Record& record : contents.records) {
    if (catalogue.find(record.algorithm) == nullptr) ++result.algorithms[record.algorithm];
    if (record.request != line) unknown = unknown_user_code(line = record.request, expressions);
    if (unknown) ++result.user_code[*unknown];
  }
  return result;
}

}  // namespace kiln
