#include "ptx/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ptx/load_error.h"
#include "token_stream.h"

namespace kiln::emulator::ptx {
namespace {

// More than any GPU has, and few enough for what is computed of them.
constexpr uint64_t most_variable_bytes = uint64_t{1} << 32, most_alignment = 1 << 20, most_registers = 1 << 20,
                   most_threads = (uint64_t{1} << 31) - 1;

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(text) {}

  Module run() {
    if (!tokens_.peek().is(".version")) tokens_.fail("'.version' at the start of a PTX module");
    while (tokens_.peek().kind != TokenKind::end) module_item();
    return std::move(module_);
  }

 private:
  void module_item() {
    if (skip_debug_information()) return;
    if (tokens_.accept(".version")) return version();
    if (tokens_.accept(".target")) return target();
    if (tokens_.accept(".address_size")) return address_size();
    while (is_linkage(tokens_.peek())) tokens_.take();
    const Token& token = tokens_.peek();
    if (token.is(".entry") || token.is(".func")) return function();
    if (is_declaration(token)) {
      module_.variables.push_back(variable());
      return tokens_.expect(';', "after the variable");
    }
    tokens_.fail("a directive of a PTX module (.entry, .func, .global, .const, .shared, ...)");
  }

  static bool is_linkage(const Token& token) {
    return token.is(".visible") || token.is(".extern") || token.is(".weak") || token.is(".common");
  }

  static bool is_declaration(const Token& token) {
    return token.kind == TokenKind::word && token.text.size() > 1 && token.text[0] == '.' &&
           space_from(token.text.substr(1)).has_value();
  }

  // .loc and .file end with their line; .section has braces; .pragma and .alias end with a semicolon.
  bool skip_debug_information() {
    const Token token = tokens_.peek();
    if (token.is(".loc") || token.is(".file")) {
      tokens_.skip_line(token.line);
    } else if (token.is(".section")) {
      while (!tokens_.peek().is('{')) {
        if (tokens_.take().kind == TokenKind::end) tokens_.fail("'{' of the section");
      }
      skip_braces();
    } else if (token.is(".pragma")) {
      while (!tokens_.accept(';')) {
        if (tokens_.take().kind == TokenKind::end) tokens_.fail("';' after .pragma");
      }
    } else {
      return false;
    }
    return true;
  }

  void skip_braces() {
    int depth = 0;
    do {
      const Token token = tokens_.take();
      if (token.kind == TokenKind::end) tokens_.fail("'}' of the section");
      depth += token.is('{') ? 1 : token.is('}') ? -1 : 0;
    } while (depth > 0);
  }

  void version() {
    const Token token = tokens_.take();
    const size_t dot = token.text.find('.');
    if (token.kind != TokenKind::number || dot == std::string_view::npos) {
      throw LoadError(token.line, fmt::format("'{}' is not a PTX version", token.text));
    }
    module_.version_major = static_cast<uint32_t>(std::atoi(std::string(token.text.substr(0, dot)).c_str()));
    module_.version_minor = static_cast<uint32_t>(std::atoi(std::string(token.text.substr(dot + 1)).c_str()));
  }

  void target() {
    module_.target = tokens_.word("the target architecture");
    while (tokens_.accept(',')) tokens_.word("a target option");
  }

  void address_size() {
    if (tokens_.count("the address size") != 64) {
      throw LoadError(tokens_.peek().line, "only .address_size 64 can be executed");
    }
  }

  // .space [attributes] [.align n] [.vN] .type name[dims] [= values]
  Variable variable() {
    Variable result;
    result.line = tokens_.peek().line;
    result.space = *space_from(tokens_.take().text.substr(1));
    uint32_t vector = 1;
    for (;;) {
      if (tokens_.accept(".align")) {
        result.alignment = alignment();
      } else if (tokens_.accept(".ptr")) {
        if (is_declaration(tokens_.peek())) tokens_.take();
        // The alignment that follows is the pointee's.
        if (tokens_.accept(".align")) tokens_.count("the alignment");
      } else if (tokens_.accept(".attribute")) {
        while (!tokens_.accept(')')) tokens_.take();
      } else if (tokens_.accept(".v2")) {
        vector = 2;
      } else if (tokens_.accept(".v4")) {
        vector = 4;
      } else if (result.type == Type::none) {
        result.type = type();
      } else {
        break;
      }
    }
    result.elements = vector;
    result.alignment = std::max(result.alignment, bytes(result.type) * vector);
    result.name = tokens_.word("the variable's name");
    dimensions(result);
    if (tokens_.accept('=')) initialiser(result);
    return result;
  }

  uint32_t alignment() {
    const uint32_t line = tokens_.peek().line;
    const auto bytes = static_cast<uint32_t>(tokens_.count("the alignment", most_alignment));
    if (!std::has_single_bit(bytes)) throw LoadError(line, fmt::format("the alignment {} is no power of two", bytes));
    return bytes;
  }

  Type type() {
    const Token token = tokens_.peek();
    const std::string_view word = tokens_.word("a type");
    const auto found = word[0] == '.' ? type_from(word.substr(1)) : std::nullopt;
    if (!found) throw LoadError(token.line, fmt::format("'{}' is not a type", word));
    return *found;
  }

  void dimensions(Variable& result) {
    while (tokens_.accept('[')) {
      if (tokens_.accept(']')) {
        result.unsized = true;
        result.elements = 0;
        continue;
      }
      const uint64_t extent = tokens_.count("an array extent", most_variable_bytes);
      const bool is_too_large = extent > 0 && result.elements > most_variable_bytes / extent;
      result.elements = is_too_large ? result.elements : result.elements * extent;
      if (is_too_large || result.size() > most_variable_bytes) {
        throw LoadError(result.line,
                        fmt::format("variable '{}' has more than {} bytes", result.name, most_variable_bytes));
      }
      tokens_.expect(']', "after the array extent");
    }
  }

  void initialiser(Variable& result) {
    if (tokens_.accept('{')) {
      const TokenStream::Nesting nesting(tokens_);
      while (!tokens_.accept('}')) {
        initialiser(result);
        if (!tokens_.peek().is('}')) tokens_.expect(',', "between initialisers");
      }
      return;
    }
    result.values.push_back(value());
    if (result.unsized) result.elements = std::max<uint64_t>(result.elements, result.values.size());
  }

  // literal | symbol[+n] | generic(symbol)[+n] | mask(symbol)
  Initialiser value() {
    Initialiser result;
    if (tokens_.peek().kind == TokenKind::word) {
      const bool generic = tokens_.peek().is("generic") && tokens_.peek(1).is('(');
      if (generic) tokens_.take(), tokens_.take();
      result.symbol = tokens_.word("a symbol");
      result.bits = static_cast<uint64_t>(addend());
      if (generic) tokens_.expect(')', "after generic(");
      result.bits += static_cast<uint64_t>(addend());
      return result;
    }
    const uint32_t line = tokens_.peek().line;
    result.bits = parse_number(tokens_).bits;
    if (!tokens_.accept('(')) return result;
    const uint64_t mask = result.bits;
    const bool generic = tokens_.accept("generic");
    if (generic) tokens_.expect('(', "after generic");
    result.symbol = tokens_.word("a symbol");
    result.bits = static_cast<uint64_t>(addend());
    if (generic) tokens_.expect(')', "after generic(");
    tokens_.expect(')', "after the masked symbol");
    result.mask_byte = 0;
    while (result.mask_byte < 8 && mask != uint64_t{0xFF} << (8 * result.mask_byte)) ++result.mask_byte;
    if (result.mask_byte == 8) throw LoadError(line, "an address mask must select one byte");
    return result;
  }

  int64_t addend() {
    if (!tokens_.peek().is('+') && !tokens_.peek().is('-')) return 0;
    return static_cast<int64_t>(parse_number(tokens_).bits);
  }

  void function() {
    Function result;
    result.line = tokens_.peek().line;
    result.is_entry = tokens_.take().is(".entry");
    if (tokens_.peek().is('(')) result.returns = parameters();
    result.name = tokens_.word("the function's name");
    if (tokens_.peek().is('(')) result.parameters = parameters();
    tuning_directives(result);
    if (!tokens_.accept(';')) result.body = block();
    module_.functions.push_back(std::move(result));
  }

  std::vector<Variable> parameters() {
    std::vector<Variable> result;
    tokens_.expect('(', "before the parameters");
    while (!tokens_.accept(')')) {
      if (!tokens_.peek().is(".param")) tokens_.fail("'.param' (parameters in registers are not supported)");
      result.push_back(variable());
      if (!tokens_.peek().is(')')) tokens_.expect(',', "between parameters");
    }
    return result;
  }

  void tuning_directives(Function& result) {
    uint32_t cluster_blocks = 0;
    bool explicit_cluster = false;
    while (!tokens_.peek().is('{') && !tokens_.peek().is(';')) {
      const Token token = tokens_.peek();
      const std::string_view word = tokens_.word("'{' of the function's body");
      if (word == ".maxntid") {
        result.max_threads = product(extents());
      } else if (word == ".reqntid") {
        result.required_block = extents();
        result.max_threads = product(result.required_block);
      } else if (word == ".reqnctapercluster") {
        cluster_blocks = product(extents());
      } else if (word == ".explicitcluster") {
        explicit_cluster = true;
      } else if (word == ".minnctapersm" || word == ".maxnctapersm" || word == ".maxnreg" ||
                 word == ".maxclusterrank" || word == ".abi_preserve" || word == ".abi_preserve_control") {
        extents();
      } else if (word == ".pragma") {
        while (!tokens_.accept(';')) tokens_.take();
      } else if (word != ".noreturn" && word != ".blocksareclusters") {
        throw LoadError(token.line, fmt::format("'{}' is not a known directive of a function", word));
      }
    }
    result.needs_cluster = cluster_blocks > 1 || (explicit_cluster && cluster_blocks == 0);
  }

  std::vector<uint32_t> extents() {
    std::vector<uint32_t> result;
    do {
      result.push_back(static_cast<uint32_t>(tokens_.count("an extent", most_threads)));
    } while (tokens_.accept(','));
    return result;
  }

  uint32_t product(const std::vector<uint32_t>& extents) const {
    uint64_t product = 1;
    for (const uint32_t extent : extents) {
      product *= extent;  // both are below 2^31
      if (product > most_threads) tokens_.fail(fmt::format("extents whose product is at most {}", most_threads));
    }
    return static_cast<uint32_t>(product);
  }

  std::unique_ptr<Block> block() {
    const TokenStream::Nesting nesting(tokens_);
    auto result = std::make_unique<Block>();
    tokens_.expect('{', "before the statements");
    while (!tokens_.accept('}')) statement(*result);
    return result;
  }

  void statement(Block& into) {
    if (skip_debug_information() || tokens_.accept(';')) return;
    const Token token = tokens_.peek();
    if (token.is('{')) {
      into.statements.emplace_back(block());
    } else if (token.is(".reg")) {
      registers(into);
    } else if (is_linkage(token) || is_declaration(token)) {
      while (is_linkage(tokens_.peek())) tokens_.take();
      into.statements.emplace_back(variable());
      tokens_.expect(';', "after the variable");
    } else if (token.kind == TokenKind::word && tokens_.peek(1).is(':')) {
      label(into);
    } else {
      if (!token.is('@') && token.kind != TokenKind::word) tokens_.fail("a statement");
      into.statements.emplace_back(parse_instruction(tokens_));
    }
  }

  // .reg .f32 %f<8>, %g;
  void registers(Block& into) {
    tokens_.take();
    const Type declared = type();
    do {
      RegisterDeclaration result{.type = declared, .line = tokens_.peek().line};
      result.name = tokens_.word("a register name");
      if (tokens_.accept('<')) {
        result.count = static_cast<uint32_t>(tokens_.count("the number of registers", most_registers));
        tokens_.expect('>', "after the number of registers");
      }
      into.statements.emplace_back(result);
    } while (tokens_.accept(','));
    tokens_.expect(';', "after the registers");
  }

  void label(Block& into) {
    const Token name = tokens_.take();
    tokens_.take();
    if (tokens_.accept(".branchtargets")) {
      BranchTargets table{.name = name.text, .line = name.line};
      do {
        table.targets.push_back(tokens_.word("a label"));
      } while (tokens_.accept(','));
      tokens_.expect(';', "after the branch targets");
      into.statements.emplace_back(std::move(table));
    } else if (tokens_.peek().is(".callprototype") || tokens_.peek().is(".calltargets")) {
      while (!tokens_.accept(';')) {
        if (tokens_.take().kind == TokenKind::end) tokens_.fail("';' after the prototype");
      }
    } else {
      into.statements.emplace_back(Label{name.text, name.line});
    }
  }

  TokenStream tokens_;
  Module module_;
};

}  // namespace

Module parse(std::string_view text) {
  return Parser(text).run();
}

}  // namespace kiln::emulator::ptx
