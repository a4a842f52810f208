// The grammar of one instruction: [@[!]guard] opcode{.modifier} [operand {, operand}] ;
#include "token_stream.h"

namespace kiln::emulator::ptx {
namespace {

Operand parse_operand(TokenStream& tokens);

Operand parse_group(TokenStream& tokens, Operand::Kind kind, char close) {
  const TokenStream::Nesting nesting(tokens);
  Operand group{.kind = kind, .line = tokens.take().line};
  if (tokens.accept(close)) return group;
  do {
    group.elements.push_back(parse_operand(tokens));
  } while (tokens.accept(','));
  tokens.expect(close, "after the last operand of the group");
  return group;
}

int64_t parse_offset(TokenStream& tokens) {
  if (!tokens.peek().is('+') && !tokens.peek().is('-')) return 0;
  // NVRTC writes [%rd1+-4].
  if (tokens.peek().is('+') && tokens.peek(1).is('-')) tokens.take();
  const Operand number = parse_number(tokens);
  if (number.kind != Operand::Kind::integer) tokens.fail("an integer offset");
  return static_cast<int64_t>(number.bits);
}

Operand parse_address(TokenStream& tokens) {
  const TokenStream::Nesting nesting(tokens);
  Operand address{.kind = Operand::Kind::address, .line = tokens.take().line};
  if (tokens.peek().kind == TokenKind::word) {
    address.name = tokens.take().text;
    address.offset = parse_offset(tokens);
  } else {
    address.offset = static_cast<int64_t>(parse_number(tokens).bits);
  }
  while (tokens.accept(',')) address.elements.push_back(parse_operand(tokens));
  tokens.expect(']', "after the address");
  return address;
}

Operand parse_name(TokenStream& tokens) {
  Operand operand{.kind = Operand::Kind::name, .line = tokens.peek().line};
  operand.negated = tokens.accept('!');
  operand.name = tokens.word("a register, a label, a variable or a number");
  operand.offset = parse_offset(tokens);
  if (!tokens.accept('|')) return operand;
  const TokenStream::Nesting nesting(tokens);
  Operand pair{.kind = Operand::Kind::pair, .line = operand.line};
  pair.elements.push_back(operand);
  pair.elements.push_back(parse_name(tokens));
  return pair;
}

Operand parse_operand(TokenStream& tokens) {
  const Token& token = tokens.peek();
  if (token.is('[')) return parse_address(tokens);
  if (token.is('{')) return parse_group(tokens, Operand::Kind::vector, '}');
  if (token.is('(')) return parse_group(tokens, Operand::Kind::list, ')');
  if (token.kind == TokenKind::number || token.is('-') || token.is('+')) return parse_number(tokens);
  return parse_name(tokens);
}

void split_opcode(std::string_view word, Instruction& instruction) {
  size_t begin = 0;
  for (bool first = true; begin <= word.size(); first = false) {
    const size_t dot = word.find('.', begin);
    const std::string_view part = word.substr(begin, dot == std::string_view::npos ? dot : dot - begin);
    if (first) {
      instruction.opcode = part;
    } else {
      instruction.modifiers.push_back(part);
    }
    if (dot == std::string_view::npos) break;
    begin = dot + 1;
  }
}

}  // namespace

Instruction parse_instruction(TokenStream& tokens) {
  Instruction instruction;
  const Token first = tokens.peek();
  instruction.line = first.line;
  if (tokens.accept('@')) {
    instruction.guard_negated = tokens.accept('!');
    instruction.guard = tokens.word("the guard predicate after '@'");
  }
  const std::string_view words = tokens.word("an instruction");
  split_opcode(words, instruction);
  tokens.enter_instruction(words);
  while (!tokens.peek().is(';')) {
    instruction.operands.push_back(parse_operand(tokens));
    if (!tokens.accept(',')) break;
  }
  const Token last = tokens.peek();
  tokens.expect(';', "after the instruction");
  tokens.enter_instruction({});
  instruction.text = std::string_view(first.text.data(), static_cast<size_t>(last.text.data() - first.text.data()));
  return instruction;
}

}  // namespace kiln::emulator::ptx
