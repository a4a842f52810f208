#include "kiln/runtime/pack_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/templates/catalogue.h"

namespace kiln::pack_check_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class PackCheck : public testing::Test {
 protected:
  static cache::DeviceEntry device(int major, int minor) { return {"a device", "Device", major, minor, 100, false}; }

  // A record of the first legal point of `algorithm` that tells the truth.
  cache::Record honest(const Request& request, const std::string& algorithm) const {
    const Target target{Arch::of(9, 0), 13, 0};
    const Config config = catalogue.find(algorithm)->on(request, target).first_legal().value();
    const Program program = catalogue.program(request, target, {algorithm, config});
    cache::Record record;
    record.request = request.key();
    record.device = device(9, 0).id;
    record.algorithm = algorithm;
    record.algorithm_digest = catalogue.digest(algorithm).value();
    record.config = config.print();
    record.outcome = std::string(cache::outcome::timed);
    record.kind = cache::TimeKind::measured;
    record.seconds = 1e-5;
    record.workspace_bytes = program.workspace_bytes;
    record.deterministic = program.deterministic;
    record.driver_version = record.nvrtc_version = "13.0";
    record.kiln_version = "1";
    record.source_digest = program.digest();
    return record;
  }

  // Refusals of a pack with this record.
  std::vector<std::string> refused(const cache::Record& record, int major = 9, int minor = 0,
                                   const Expressions& expressions = {}) const {
    const std::string text = cache::print_pack(cache::make_pack({device(major, minor)}, {record}), "1");
    std::vector<std::string> reasons;
    for (const auto& refusal : cache::parse_pack(text, pack_validator(catalogue, expressions)).refused) {
      reasons.push_back(refusal.text());
    }
    return reasons;
  }

  std::string refusal(const cache::Record& record) const {
    const std::vector<std::string> reasons = refused(record);
    return reasons.empty() ? "nothing refused" : reasons.front();
  }

  const Catalogue catalogue = make_catalogue(embedded_sources());
  const Request conv = Request::parse("conv_forward x=f32:1x64x14x14 w=f32:32x64x3x3 pad=1");
  const cache::Record good = honest(conv, "conv_implicit_gemm");
};

TEST_F(PackCheck, TellsWhatWasReplacedFromWhatIsNotHere) {
  const std::string digest = catalogue.digest("conv_direct").value();
  EXPECT_TRUE(is_not_replaced(catalogue)("conv_direct", digest));
  EXPECT_FALSE(is_not_replaced(catalogue)("conv_direct", "another"));
  EXPECT_TRUE(is_not_replaced(catalogue)("of_a_user", "any"));
  EXPECT_FALSE(is_current(catalogue)("of_a_user", "any"));
}

TEST_F(PackCheck, LetsTheTruthIn) {
  for (const Algorithm& algorithm : catalogue.algorithms()) {
    const Target target{Arch::of(9, 0), 13, 0};
    if (!algorithm.on(conv, target).first_legal()) continue;
    EXPECT_THAT(refused(honest(conv, algorithm.name())), IsEmpty()) << algorithm.name();
  }
}

TEST_F(PackCheck, RefusesWhatCannotBeTrueAndSaysWhy) {
  const auto altered = [&](const auto& alter) {
    cache::Record record = good;
    alter(record);
    return refusal(record);
  };
  EXPECT_THAT(altered([](auto& r) { r.config = "BLOCK_M=7"; }), HasSubstr("line 4: "));
  EXPECT_THAT(altered([](auto& r) { r.config = "nonsense"; }), HasSubstr("line 4: "));
  EXPECT_THAT(altered([](auto& r) { r.config += ",ZZ=1"; }), HasSubstr("ZZ"));
  EXPECT_THAT(altered([](auto& r) { r.workspace_bytes += 256; }), HasSubstr("workspace"));
  EXPECT_THAT(altered([](auto& r) { r.deterministic = !r.deterministic; }), HasSubstr("reproducible"));
  EXPECT_THAT(altered([](auto& r) { r.source_digest = "0123"; }), HasSubstr("source digest"));
  EXPECT_THAT(altered([](auto& r) { r.nvrtc_version = "new"; }), HasSubstr("NVRTC version new"));
  EXPECT_THAT(altered([](auto& r) { r.request = "conv_forward x=f32:1x64x14x14"; }), HasSubstr("line 3: "));
  EXPECT_THAT(altered([](auto& r) { r.request += " "; }), HasSubstr("expected: conv_forward"));
  EXPECT_THAT(altered([](auto& r) { r.request = "softmax_forward x=f32:1x10:nc y=f32:1x10:nc axis=1 mode=accurate"; }),
              HasSubstr("line 4: serves conv_forward"));
}

// A library with other estimates may have another order of sums for all batches: that is no lie.
TEST_F(PackCheck, LetsRecordsOfAnotherOrderOfSumsBe) {
  const std::string line = "gemm a=f32:16x300 b=f32:300x24";
  cache::Record record = honest(Request::parse(line), "gemm_splitk");
  record.request = Request::parse(line + " batch_invariant").key();
  EXPECT_THAT(refused(record), IsEmpty());
  record.config += ",ZZ=1";
  EXPECT_THAT(refusal(record), HasSubstr("ZZ"));
}

// 118 GFLOP take 1.8 ms at the f32 peak of the device, the 6.6 GB of the copy 1.4 ms at its bandwidth.
TEST_F(PackCheck, RefusesTimesThatNoKernelTakes) {
  cache::DeviceEntry h200 = device(9, 0);
  h200.id =
      "name=\"H200 clock=1MHz\" cc=9.0 sms=132 memory=141GiB bus=6016 mig=none clock=1980MHz "
      "memory_clock=3201MHz emulated=no";
  const auto verdict = [&](const std::string& line, const std::string& algorithm, double seconds) {
    cache::Record record = honest(Request::parse(line), algorithm);
    record.device = h200.id;
    record.seconds = seconds;
    const std::string text = cache::print_pack(cache::make_pack({h200}, {record}), "1");
    const auto parsed = cache::parse_pack(text, pack_validator(catalogue));
    return parsed.refused.empty() ? "let in" : parsed.refused.front().text();
  };
  const std::string conv_line = "conv_forward x=f32:32x256x56x56 w=f32:256x256x3x3 pad=1";
  EXPECT_EQ(verdict(conv_line, "conv_implicit_gemm", 1.8e-3), "let in");
  EXPECT_THAT(verdict(conv_line, "conv_implicit_gemm", 1e-3), HasSubstr("line 4: a time of 0.001 s is impossible"));
  EXPECT_EQ(verdict("conv_forward x=f16:32x256x56x56 w=f16:256x256x3x3 pad=1", "conv_implicit_gemm", 1e-3), "let in")
      << "tensor cores are that fast";
  const std::string copy = "tensor_transform x=f32:1x64x3584x3584 y=f32:1x64x3584x3584";
  EXPECT_EQ(verdict(copy, "tensor_transform_simple", 1.4e-3), "let in");
  EXPECT_THAT(verdict(copy, "tensor_transform_simple", 0.9e-3), HasSubstr("impossible"));
  EXPECT_EQ(verdict("tensor_transform x=f32:1x64x56x56 y=f32:1x64x56x56", "tensor_transform_simple", 3e-7), "let in")
      << "its traffic may stay in L2";
  EXPECT_EQ(verdict("tensor_transform x=f32:1x64x224x224 y=f32:1x64x224x224", "tensor_transform_simple", 3e-7),
            "let in")
      << "and that is faster than the memory";
  const std::string whole = h200.id;
  for (const std::string figure : {" sms=", " clock=", " memory_clock=", " bus="}) {
    for (const char* instead : {" unknown=", "no", "0"}) {
      const size_t at = whole.rfind(figure);
      h200.id = *instead == ' ' ? whole.substr(0, at) + instead + whole.substr(at + figure.size())
                                : whole.substr(0, at) + figure + instead + whole.substr(whole.find(' ', at + 1));
      EXPECT_EQ(verdict(copy, "tensor_transform_simple", 3e-7), "let in") << "nothing is known of " << h200.id;
    }
  }
}

TEST_F(PackCheck, JudgesByTheDeviceOfTheRecord) {
  EXPECT_THAT(refused(good, 7, 0), testing::ElementsAre(HasSubstr("7.0 is not supported")));
}

TEST_F(PackCheck, LetsInWhatAnotherVersionMadeAndWhatFailed) {
  cache::Record stale = good;
  stale.algorithm_digest = "of another version";
  stale.config = "UNKNOWN=1";
  EXPECT_THAT(refused(stale), IsEmpty());
  cache::Record removed = good;
  removed.algorithm = "conv_of_yesteryear";
  EXPECT_THAT(refused(removed), IsEmpty());
  cache::Record failed = good;
  failed.outcome = std::string(cache::outcome::refused);
  failed.seconds = 0;
  failed.source_digest.clear();
  EXPECT_THAT(refused(failed), IsEmpty());
  failed.outcome = std::string(cache::outcome::crashed);
  EXPECT_THAT(refused(failed), IsEmpty());
}

// A failure keeps tuners away from its variant, so there must be one.
TEST_F(PackCheck, RefusesTheFailureOfWhatThereIsNot) {
  cache::Record failed = good;
  failed.outcome = std::string(cache::outcome::wrong_result);
  failed.seconds = 0;
  failed.source_digest = "0123";
  EXPECT_THAT(refusal(failed), HasSubstr("source digest"));
  failed.source_digest.clear();
  failed.config += ",ZZ=1";
  EXPECT_THAT(refusal(failed), HasSubstr("ZZ"));
}

class UserCodeInPacks : public PackCheck {
 protected:
  const Expressions known = {{"e", Expression("--- prologue\nx * m\n---\nacc * t", {"m", "t"})}};
  const Request request = Request::parse(
      "conv_forward x=f32:1x64x14x14 w=f32:32x64x3x3 pad=1 epilogue=user:e epilogue.t=f32:32 prologue.m=f32:64", known);
  const cache::Record record = honest(request, "conv_implicit_gemm_splitk");
};

TEST_F(UserCodeInPacks, IsJudgedWhollyByItsText) {
  EXPECT_THAT(refused(record, 9, 0, known), IsEmpty());
  cache::Record altered = record;
  altered.source_digest = "0123";
  EXPECT_THAT(refused(altered, 9, 0, known), testing::ElementsAre(HasSubstr("source digest")));
}

TEST_F(UserCodeInPacks, WithoutItsTextIsLetInAndAllButTheSourceIsJudged) {
  EXPECT_GT(record.workspace_bytes, 0);
  EXPECT_THAT(refused(record), IsEmpty());
  const auto altered = [&](const auto& alter) {
    cache::Record changed = record;
    alter(changed);
    return refusal(changed);
  };
  EXPECT_THAT(altered([](auto& r) { r.source_digest = "0123"; }), HasSubstr("nothing refused"));
  EXPECT_THAT(altered([](auto& r) { r.config += ",ZZ=1"; }), HasSubstr("ZZ"));
  EXPECT_THAT(altered([](auto& r) { r.workspace_bytes = 0; }), HasSubstr("workspace"));
  EXPECT_THAT(altered([](auto& r) { r.deterministic = !r.deterministic; }), HasSubstr("reproducible"));
  EXPECT_THAT(
      altered([](auto& r) { r.request = r.request.substr(0, r.request.find(" epilogue.t")) + " epilogue.c=f32:32"; }),
      HasSubstr("the name 'c' is taken"));
}

TEST_F(UserCodeInPacks, IsCountedWhereNothingCanBeMadeOfIt) {
  cache::Record foreign = good;
  foreign.algorithm = "conv_stem";
  cache::Record second = record;
  second.config = "another";
  const cache::Pack pack = cache::make_pack({device(9, 0)}, {good, foreign, record, second});
  const NotAtHand missing = not_at_hand(pack, catalogue, {});
  EXPECT_THAT(missing.user_code, testing::ElementsAre(testing::Pair(request.user_code.digest(), 2)));
  EXPECT_THAT(missing.algorithms, testing::ElementsAre(testing::Pair("conv_stem", 1)));
  EXPECT_THAT(not_at_hand(pack, catalogue, known).user_code, IsEmpty());
}

}  // namespace
}  // namespace kiln::pack_check_test
