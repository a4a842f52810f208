// A cursor over tokens, shared by the parsers of declarations and of instructions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lexer.h"
#include "ptx/ast.h"

namespace kiln::emulator::ptx {

class TokenStream {
 public:
  explicit TokenStream(std::string_view text) : tokens_(tokenize(text)) {}

  const Token& peek(size_t ahead = 0) const;
  Token take();
  bool accept(char punctuation);
  bool accept(std::string_view word);
  void expect(char punctuation, std::string_view context);
  std::string_view word(std::string_view what);
  /// A non-negative integer literal.
  uint64_t count(std::string_view what);
  /// The same, of at most `most`.
  uint64_t count(std::string_view what, uint64_t most);
  void skip_line(uint32_t line);
  /// The tokens from here on are part of this instruction: "ld.global.u32". Empty: of none.
  void enter_instruction(std::string_view words) { instruction_ = words; }
  [[noreturn]] void fail(std::string_view expected) const;

  /// Around a construct that may hold others of its kind: a parser calls itself for it, and a stack is finite.
  class Nesting {
   public:
    explicit Nesting(TokenStream& tokens);
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --tokens_.depth_; }

   private:
    TokenStream& tokens_;
  };

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string_view instruction_;  // for messages
};

/// An integer, 0f... or 0d... literal with an optional sign in front of it, as an operand of kind integer, f32 or f64.
Operand parse_number(TokenStream& tokens);

/// A whole instruction up to and including its semicolon. `text` is the module's.
Instruction parse_instruction(TokenStream& tokens);

}  // namespace kiln::emulator::ptx
