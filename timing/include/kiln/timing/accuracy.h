// How far the time model can be trusted: what bench_time_model found, as it is committed beside the cards.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::timing {

/// One measured table against the model.
struct Judgement {
  std::string card;   ///< "a100"
  int version = 0;    ///< model_version that was judged.
  std::string date;   ///< "2026-11-23"
  std::string table;  ///< "convolution"
  int rows = 0;
  double spearman = 0;  ///< Rank correlation.
  double mean = 0;      ///< Geometric mean of modelled / measured.
  double spread = 0;    ///< exp of the standard deviation of its logarithm.

  /// By how much times are off typically, mean and spread together: 0.28 is 28%.
  double error() const;
  /// A line of judged.txt.
  std::string print() const;
};

/// Lines as cards/judged.txt has them. Throws Error(parse_error), with the line, for anything else.
std::vector<Judgement> parse_judgements(std::string_view text);

/// All that are committed.
std::vector<Judgement> judgements();

/// Judgements of this version of the model for the built-in card that a device's name holds ("NVIDIA A100-SXM4-80GB").
std::vector<Judgement> judgements_of(std::string_view device_name);

/// "rank correlation 0.92 to 0.99 with measured times of 3 tables, off by 6% to 20%"; "not judged by measured times on
/// this card" for none.
std::string accuracy_text(const std::vector<Judgement>& judgements);

}  // namespace kiln::timing
