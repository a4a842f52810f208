#include "measured_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "kiln/base/error.h"
#include "kiln/timing/card.h"

namespace kiln::cli::measured_card_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A GPU of Ampere's that no card is named after.
device::DeviceInfo gpu() {
  device::DeviceInfo info;
  info.name = "NVIDIA GeForce RTX 3080";
  info.cc_major = 8;
  info.cc_minor = 6;
  info.sms = 68;
  info.clock_khz = 1'710'000;
  info.memory_clock_khz = 9'501'000;
  info.memory_bus_bits = 320;
  info.l2_bytes = 5 << 20;
  info.threads_per_sm = 1536;
  info.blocks_per_sm = 16;
  info.registers_per_sm = 65536;
  info.shared_per_sm = 100 << 10;
  return info;
}

calibration::Findings findings() {
  calibration::Findings found;
  found.copy_bytes_per_second = 689.6e9;
  found.calibration.l2_bytes_per_clock = 17.7;
  found.launch_seconds = 2.2e-6;
  const double clocks = 68 * 1.71e9;  // half of the rate with sums in f32, as GeForce cards have it
  found.tensor = {{"f16", "f32", MathClass::tensor_f16, 2 * 256 * 0.97 * clocks},
                  {"f16", "f16", MathClass::tensor_f16_sums, 2 * 512 * 0.97 * clocks},
                  {"tf32", "f32", MathClass::tensor_tf32, 2 * 128 * 0.97 * clocks},
                  {"int8", "i32", MathClass::tensor_int8, 2 * 1024 * 0.97 * clocks},
                  {"fp8", "f32", MathClass::tensor_fp8, 2 * 512 * 0.97 * clocks}};
  return found;
}

timing::UserCard card_of(const device::DeviceInfo& info) {
  return measured_card(info, findings(), "13.0", "2026-11-23");
}

std::string refusal_of(const device::DeviceInfo& info) {
  try {
    base_of_card(info);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "none";
}

TEST(MeasuredCard, HasWhatWasFoundAndKeepsTheRestOfTheNearest) {
  const timing::UserCard written = card_of(gpu());
  EXPECT_EQ(written.base, "rtx3070");
  const timing::Card card = timing::parse_card("mine", written.text), nearest = timing::find_card("rtx3070");
  EXPECT_EQ(card.arch, 86U);
  EXPECT_EQ(card.sms, 68U);
  EXPECT_EQ(card.clock_mhz, 1710U);
  EXPECT_EQ(card.warps, 48U);
  EXPECT_EQ(card.l2_bytes, 5U << 20);
  EXPECT_EQ(card.dram_peak_gbs, 760U);  // 9501 MHz, twice, 320 bits
  EXPECT_EQ(card.dram_gbs, 690U);
  EXPECT_EQ(card.l2_bytes_per_clock, 18U);
  EXPECT_EQ(card.launch_ns, 2200U);
  const auto over_share = [&](double rate) {
    return static_cast<uint32_t>(std::lround(rate * 97 / nearest.mma_percent));
  };
  EXPECT_EQ(card.tensor_float, over_share(64));
  EXPECT_EQ(card.tensor_half, over_share(128));
  EXPECT_EQ(card.tensor_tf32, over_share(32));
  EXPECT_EQ(card.tensor_byte, over_share(256));
  EXPECT_EQ(card.tensor_fp8, over_share(128));
  EXPECT_EQ(card.mma_percent, nearest.mma_percent);
  const uint32_t behind_l2 = (nearest.dram_latency - nearest.l2_latency) * 1710 / nearest.clock_mhz;
  EXPECT_EQ(card.dram_latency, nearest.l2_latency + behind_l2) << "behind L2 as long in time";
  EXPECT_EQ(card.l2_latency, nearest.l2_latency);
  EXPECT_EQ(card.carveout_kb, nearest.carveout_kb);
}

TEST(MeasuredCard, SaysOfEachFigureWhereItIsFrom) {
  const std::string text = card_of(gpu()).text;
  EXPECT_THAT(text, HasSubstr("# NVIDIA GeForce RTX 3080, measured by `kiln devices --calibrate` on 2026-11-23.\n"));
  EXPECT_THAT(text, HasSubstr("\nsms 68  told by the driver of CUDA 13.0, 2026-11-23\n"));
  EXPECT_THAT(text, HasSubstr("\ndram_gbs 690  measured on 2026-11-23, driver of CUDA 13.0: a large copy"));
  EXPECT_THAT(text, HasSubstr("\nl2_latency 262  rtx3070: ["));
  EXPECT_THAT(text, HasSubstr("# [whitepaper] NVIDIA Ampere GA102")) << "what the short names mean";
  device::DeviceInfo emulated = gpu();
  emulated.name = "Kiln emulated NVIDIA A10 (machine-code clock 2 of /tmp/a100.card)";
  emulated.emulated = true;
  EXPECT_THAT(card_of(emulated).text, AllOf(HasSubstr(" modelled on 2026-11-23"), Not(HasSubstr("measured on 2026"))));
}

TEST(MeasuredCard, WhatTheDriverDoesNotTellIsKept) {
  device::DeviceInfo info = gpu();
  info.memory_clock_khz = 0;
  info.l2_bytes = 0;
  const timing::Card card = timing::parse_card("mine", card_of(info).text), nearest = timing::find_card("rtx3070");
  EXPECT_EQ(card.dram_peak_gbs, nearest.dram_peak_gbs);
  EXPECT_EQ(card.l2_bytes, nearest.l2_bytes);
}

TEST(MeasuredCard, PrintsWhatWasFoundAndWhatWasKept) {
  const timing::UserCard card = card_of(gpu());
  const std::string text = card_text(card, {});
  EXPECT_THAT(text, HasSubstr("dram_gbs                690          412  measured on 2026-11-23"));
  EXPECT_THAT(text, HasSubstr("kept from rtx3070: arch, shared_reserve, l1_bytes, carveout_kb, fma_cycles, "));
  const nlohmann::json json = card_json(card, "my.card").value();
  EXPECT_EQ(json["base"], "rtx3070");
  EXPECT_EQ(json["file"], "my.card");
  EXPECT_EQ(json["figures"].size() + json["kept"].size(), card.figures.size());
  const auto sms = std::find_if(json["figures"].begin(), json["figures"].end(),
                                [](const nlohmann::json& figure) { return figure["name"] == "sms"; });
  ASSERT_NE(sms, json["figures"].end());
  EXPECT_EQ((*sms)["value"], 68);
  EXPECT_EQ((*sms)["base_value"], 46);
}

TEST(MeasuredCard, NeedsACardOfTheComputeCapability) {
  device::DeviceInfo info = gpu();
  info.cc_minor = 7;
  EXPECT_THAT(refusal_of(info), AllOf(HasSubstr("no built-in card has the compute capability of NVIDIA GeForce RTX "
                                                "3080, 8.7"),
                                      HasSubstr("there is a10 (8.6), a100 (8.0), ")));
  info.cc_major = 7;
  info.cc_minor = 0;
  EXPECT_THAT(refusal_of(info), HasSubstr("7.0"));
}

TEST(MeasuredCard, NeedsTimesOfACard) {
  device::DeviceInfo info = gpu();
  info.name = "Kiln emulated NVIDIA A10";
  info.emulated = true;
  EXPECT_THAT(refusal_of(info), AllOf(HasSubstr("come from PTX alone"), HasSubstr("KILN_EMULATOR_CLOCK=machine")));
}

}  // namespace
}  // namespace kiln::cli::measured_card_test
