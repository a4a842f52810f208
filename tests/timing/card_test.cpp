#include "kiln/timing/card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "kiln/base/error.h"
#include "kiln/timing/user_card.h"

namespace kiln::timing::card_test {
namespace {

std::string message_of(const std::string& text) {
  try {
    parse_card("mine", text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_sane_machine(const Card& card) {
  EXPECT_TRUE(card.arch >= 75 && card.arch <= 130);
  EXPECT_TRUE(card.sms >= 1 && card.sms <= 256);
  EXPECT_TRUE(card.clock_mhz >= 500 && card.clock_mhz <= 4000);
  EXPECT_TRUE(card.warps >= 32 && card.warps <= 64 && card.blocks >= 16 && card.blocks <= 32);
  EXPECT_EQ(card.registers, 65536U);
  ASSERT_FALSE(card.carveout_kb.empty());
  EXPECT_TRUE(std::is_sorted(card.carveout_kb.begin(), card.carveout_kb.end()));
  EXPECT_EQ(card.carveout_kb.back() * 1024, card.shared_bytes);
  EXPECT_LT(card.shared_bytes, card.l1_bytes);
  EXPECT_LT(card.l1_bytes, card.l2_bytes);
  const auto cycles = {card.fma_cycles,     card.imad_cycles,    card.alu_cycles,
                       card.half_cycles,    card.double_cycles,  card.special_cycles,
                       card.convert_cycles, card.uniform_cycles, card.branch_cycles};
  for (const uint32_t pipe : cycles) EXPECT_TRUE(pipe >= 1 && pipe <= 64);
}

void expect_sane_tensors(const Card& card) {
  EXPECT_TRUE(card.tensor_half >= 128 && card.tensor_half <= 512);
  EXPECT_TRUE(card.tensor_float == card.tensor_half || card.tensor_float * 2 == card.tensor_half);
  EXPECT_EQ(card.tensor_tf32 * 2, card.tensor_float);
  EXPECT_EQ(card.tensor_byte, card.tensor_half * 2);
}

void expect_sane_memory(const Card& card) {
  EXPECT_TRUE(card.shared_latency >= 15 && card.shared_latency <= 35);
  EXPECT_LT(card.dispatch_latency, card.shared_latency);
  EXPECT_LT(card.shared_latency, card.l1_latency);
  EXPECT_TRUE(card.l2_latency >= 150 && card.l2_latency <= 400);
  EXPECT_TRUE(card.dram_latency >= card.l2_latency + 100 && card.dram_latency <= 1000);
  EXPECT_TRUE(card.l2_bytes_per_clock >= 8 && card.l2_bytes_per_clock <= 64);
  EXPECT_TRUE(card.dram_gbs * 10 >= card.dram_peak_gbs * 7 && card.dram_gbs < card.dram_peak_gbs);
  EXPECT_LT(card.dram_gbs * 1000ULL, uint64_t{card.l2_bytes_per_clock} * card.sms * card.clock_mhz);  // L2 gives more
  EXPECT_TRUE(card.memory_queue >= 1 && card.memory_queue <= 16);
  EXPECT_LT(card.l0_bytes, card.l1i_bytes);
  EXPECT_LT(card.prefetch_lines, card.l0_bytes / 128);
}

TEST(Card, BuiltInOnesHaveSaneFigures) {
  for (const std::string& name : card_names()) {
    SCOPED_TRACE(name);
    const Card card = find_card(name);
    EXPECT_EQ(card.name, name);
    expect_sane_machine(card);
    expect_sane_tensors(card);
    expect_sane_memory(card);
  }
}

TEST(Card, IsThatOfTheDevicesName) {
  EXPECT_EQ(card_for({.name = "NVIDIA H200", .arch = 90}).name, "h200");
  EXPECT_EQ(card_for({.name = "NVIDIA H100 80GB HBM3", .arch = 90}).name, "h100");
  EXPECT_EQ(card_for({.name = "NVIDIA A100-SXM4-80GB", .arch = 80}).name, "a100");
  EXPECT_EQ(card_for({.name = "Tesla T4", .arch = 75}).name, "t4");
  EXPECT_EQ(card_for({.name = "NVIDIA GeForce RTX 3070", .arch = 86}).name, "rtx3070");
  EXPECT_EQ(card_for({.name = "NVIDIA GeForce RTX 4090", .arch = 89}).name, "rtx4090");
  EXPECT_EQ(card_for({.name = "NVIDIA RTX 4000 Ada Generation", .arch = 89}).name, "rtx4000ada") << "three words";
}

TEST(Card, OfAnotherDeviceIsTheClosestOneWithItsCounts) {
  const Card card = card_for({.name = "NVIDIA GeForce RTX 4070", .arch = 89, .sms = 46, .clock_mhz = 2475});
  EXPECT_EQ(card.name, "rtx4090 with the counts of NVIDIA GeForce RTX 4070");
  EXPECT_EQ(card.sms, 46U);
  EXPECT_EQ(card.clock_mhz, 2475U);
  EXPECT_EQ(card.l2_bytes, find_card("rtx4090").l2_bytes);
  EXPECT_EQ(card_for({.name = "Orin", .arch = 87}).arch, 86U);
  EXPECT_EQ(card_for({.name = "NVIDIA A10G", .arch = 86}).name, "a10 with the counts of NVIDIA A10G");
}

// Multiply-adds of a scheduler in a cycle: sums in single precision take twice the time on GeForce cards.
TEST(Card, GeForceCardsHaveHalfTheRateOfSumsInSinglePrecision) {
  const auto rates = [](const char* name, uint32_t arch) {
    const Card card = card_for({.name = name, .arch = arch});
    return std::array{card.tensor_half, card.tensor_float, card.tensor_tf32, card.tensor_byte, card.tensor_fp8};
  };
  using Rates = std::array<uint32_t, 5>;
  EXPECT_EQ(rates("NVIDIA GeForce RTX 4090", 89), (Rates{128, 64, 32, 256, 128}));
  EXPECT_EQ(rates("NVIDIA GeForce RTX 4070 Ti", 89), (Rates{128, 64, 32, 256, 128}));
  EXPECT_EQ(rates("NVIDIA RTX 4000 Ada Generation", 89), (Rates{128, 128, 64, 256, 256}));
  EXPECT_EQ(rates("NVIDIA L4", 89), (Rates{128, 128, 64, 256, 256}));
  EXPECT_EQ(rates("NVIDIA GeForce RTX 3090", 86)[1], 64U);
  EXPECT_EQ(rates("NVIDIA RTX A6000", 86)[1], 128U);
  EXPECT_EQ(rates("NVIDIA GeForce RTX 2070", 75)[1], 64U) << "half of a T4's";
  EXPECT_EQ(rates("NVIDIA RTX PRO 6000 Blackwell", 120), (Rates{128, 128, 64, 256, 256})) << "twice an RTX 5090's";
}

TEST(Card, KeepsDramAtItsOwnClock) {
  const Card card = find_card("a100");
  const Card slow = at_clock(card, card.clock_mhz / 2);
  EXPECT_EQ(slow.clock_mhz, card.clock_mhz / 2);
  EXPECT_EQ(slow.dram_latency, card.l2_latency + (card.dram_latency - card.l2_latency) / 2) << "the way to L2 is ours";
  EXPECT_EQ(slow.dram_gbs, card.dram_gbs);
  EXPECT_EQ(slow.l2_latency, card.l2_latency);
  EXPECT_EQ(at_clock(card, card.clock_mhz).dram_latency, card.dram_latency);
  EXPECT_EQ(card_for({.name = "NVIDIA A100", .arch = 80, .clock_mhz = slow.clock_mhz}).dram_latency, slow.dram_latency);
}

TEST(Card, SharesLoadStoreUnitsAsItsKindHasThem) {
  for (const char* name : {"a100", "h100", "h200", "b200"}) EXPECT_EQ(find_card(name).lsu_cycles, 1U) << name;
  for (const char* name : {"t4", "a10", "l40s", "rtx3070", "rtx4000ada", "rtx4090", "rtx5090"})
    EXPECT_EQ(find_card(name).lsu_cycles, 2U) << name;
}

TEST(Card, TakesTheSameShareOfAnotherPeakOfMemory) {
  const Card small = find_card("a100");
  const Card large = card_for({.name = "NVIDIA A100", .arch = 80, .dram_peak_gbs = 2 * small.dram_peak_gbs});
  EXPECT_EQ(large.dram_gbs, 2 * small.dram_gbs);
  EXPECT_EQ(large.dram_peak_gbs, 2 * small.dram_peak_gbs);
  EXPECT_EQ(card_for({.name = "NVIDIA A100", .arch = 80, .dram_peak_gbs = 1}).dram_gbs, 1U) << "0 would last for ever";
}

TEST(Card, NoneIsLikeADeviceOfAnotherMachine) {
  try {
    card_for({.name = "NVIDIA V100", .arch = 70});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no card of the time model has the figures of NVIDIA V100 (sm_70)"));
  }
}

TEST(Card, AUsersFileIsRead) {
  const std::string path = testing::TempDir() + "mine.card";
  std::ofstream(path) << "arch 80\n";
  try {
    read_card(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(path));
    EXPECT_THAT(error.what(), testing::HasSubstr("is missing"));
  }
  try {
    read_card(path + "/none");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot read the card"));
  }
}

TEST(Card, AnUnknownNameListsThoseThatThereAre) {
  try {
    find_card("a1000");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("there is a10, a100"));
  }
}

TEST(Card, SaysWhatIsWrongInAFile) {
  EXPECT_THAT(message_of("\nsmss 3"), testing::HasSubstr("line 2: no figure is called smss"));
  EXPECT_THAT(message_of("sms 3\nsms 3"), testing::HasSubstr("line 2: sms stands twice"));
  for (const char* value : {"many", "3,4", "-1", "nan", "2.5", "0x10", "99999999999", "3,"}) {
    EXPECT_THAT(
        message_of(std::string("sms ") + value),
        testing::HasSubstr(std::string("line 1: sms is ") + value + ", and has to be a whole number from 1 to"));
  }
  EXPECT_THAT(message_of("sms"), testing::HasSubstr("line 1: sms is empty, and has to be"));
  EXPECT_THAT(message_of("# nothing\n"), testing::StartsWith("card mine: address_cycles is missing (a card has every"));
  EXPECT_THAT(message_of(""), testing::HasSubstr("is missing"));
}

TEST(Card, FiguresThatNothingCanBeComputedWithAreRefused) {
  for (const char* zero : {"sms", "clock_mhz", "warps", "blocks", "fma_cycles", "memory_queue", "l2_bytes_per_clock",
                           "dram_gbs", "dram_peak_gbs"}) {
    EXPECT_THAT(message_of(std::string(zero) + " 0"),
                testing::HasSubstr(std::string(zero) + " is 0, and has to be a whole number from 1 to"));
  }
  EXPECT_THAT(message_of("memory_queue 17"),
              testing::HasSubstr("line 1: memory_queue is 17, and has to be a whole number from 1 to 16"));
  EXPECT_THAT(message_of("launch_ns 4294967295"),
              testing::HasSubstr("launch_ns is 4294967295, and has to be a whole number from 0 to 1000000"));
  EXPECT_THAT(message_of("carveout_kb 8,4194304"),
              testing::HasSubstr("carveout_kb is 8,4194304, and has to be a whole number from 0 to 1024"));
  EXPECT_THAT(message_of("sms 1\nmemory_queue 16\nl2_latency 0"), testing::HasSubstr("is missing"));
}

TEST(Card, BlanksAndLineEndsAreFree) {
  std::ifstream file(KILN_SOURCE_DIR "/timing/cards/a100.card");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('#')) line.replace(line.find(' '), 1, "\t  ");
    text += "  " + line + "\r\n\t\r\n";
  }
  EXPECT_EQ(digest_of(parse_card("mine", text)), digest_of(find_card("a100")));
}

TEST(Card, AnyOtherFigureIsAnotherDigest) {
  const Card card = find_card("a100");
  EXPECT_EQ(digest_of(at_clock(card, card.clock_mhz)), digest_of(card));
  EXPECT_NE(digest_of(at_clock(card, card.clock_mhz - 1)), digest_of(card));
  Card other = card;
  other.name = "mine";
  EXPECT_EQ(digest_of(other), digest_of(card)) << "its name is none";
  other.carveout_kb.pop_back();
  EXPECT_NE(digest_of(other), digest_of(card));
}

TEST(Card, AFolderIsNoCard) {
  try {
    read_card(testing::TempDir());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot read the card " + testing::TempDir()));
  }
}

TEST(UserCard, OnlyHasFiguresThatCardsHave) {
  const auto message_of_found = [](const std::vector<FoundFigure>& found) {
    try {
      user_card("a100", found, "mine");
      return std::string("none");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(message_of_found({{"sms", 1, "counted"}}), "none");
  EXPECT_THAT(message_of_found({{"smss", 1, ""}}), testing::HasSubstr("that cards do not have"));
  EXPECT_THAT(message_of_found({{"sms", 1, ""}, {"sms", 2, ""}}), testing::HasSubstr("found twice"));
  EXPECT_THAT(message_of_found({{"sms", 0, ""}}),
              testing::HasSubstr("sms is 0, and has to be a whole number from 1 to"));
}

TEST(UserCard, ReadsBackAsTheCardThatItIs) {
  for (const std::string& name : card_names()) {
    const UserCard same = user_card(name, {}, "nothing found");
    Card card = parse_card(name, same.text);
    const Card built_in = find_card(name);
    EXPECT_EQ(card.carveout_kb, built_in.carveout_kb);
    EXPECT_EQ(card.dram_gbs, built_in.dram_gbs);
    EXPECT_EQ(card.prefetch_lines, built_in.prefetch_lines) << "the last line";
    const UserCard other = user_card(name, {{"sms", 7, "counted"}}, "one found");
    card = parse_card(name, other.text);
    EXPECT_EQ(card.sms, 7U);
    EXPECT_EQ(card.clock_mhz, built_in.clock_mhz);
    EXPECT_THAT(other.text, testing::HasSubstr("\nsms 7  counted\n"));
  }
}

}  // namespace
}  // namespace kiln::timing::card_test
