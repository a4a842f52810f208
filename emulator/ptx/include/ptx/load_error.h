// The error of PTX that cannot be loaded.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace kiln::emulator {

/// PTX that cannot be executed. what() names the line and the instruction.
class LoadError : public std::exception {
 public:
  LoadError(uint32_t line, std::string message);
  const char* what() const noexcept override { return message_.c_str(); }
  uint32_t line() const { return line_; }

 private:
  uint32_t line_;
  std::string message_;
};

}  // namespace kiln::emulator
