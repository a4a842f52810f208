// Short words for people: layers, times, shares.
#pragma once

#include <string>
#include <string_view>

#include "kiln/device/device.h"
#include "kiln/generator/request.h"

namespace kiln::cli {

/// A layer in few words: `conv 1x64x56x56 -> 64, 3x3, pad 1, bias+relu`.
std::string summary(const Request& request);
/// `emulated NVIDIA H200, times modelled`, `NVIDIA H200, times measured`.
std::string device_text(const device::DeviceInfo& device);
/// `12.3 us`, `1.50 ms`.
std::string time_text(double seconds);
/// `12s`, `3m07s`, `2h05m`.
std::string duration_text(double seconds);
/// `42.0%`; `-` for a part of nothing.
std::string percent_text(double share);
/// `calibrated on this device: copy_efficiency=0.85 ...`, or what is assumed. `figures` as Calibration prints them.
std::string predictions_text(bool calibrated, const std::string& figures);
/// `66.9 TFLOP/s`: a rate in the unit that suits it.
std::string rate_text(double rate, std::string_view unit);
/// `1 layer`, `3 layers`.
std::string count_text(size_t count, std::string_view one);
/// `1.25x`; `-` for a ratio of nothing.
std::string ratio_text(double ratio);
/// An error of several lines in one: the compiler's first complaint, with its file and line, where there is one; else
/// the first line, and the second where that one ends with a colon.
std::string in_one_line(std::string_view error);

}  // namespace kiln::cli
