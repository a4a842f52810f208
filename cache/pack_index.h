// A pack of an application's cache: one pass over it finds where the records of each request are; they are read and
// checked when the request is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "front.h"
#include "pack_line.h"
#include "pack_reader.h"

namespace kiln::cache {

inline constexpr std::size_t max_pack_problems = 20;

/// The pass reads what makes a pack one: header, device lines, the kind of each line, the end. Record lines are looked
/// at with their request, and fields that do not decide about winning never; importing checks them. Not thread-safe.
class PackIndex {
 public:
  /// Makes the pass. `wants`: whether the records of a device are wanted. Throws Error(io_error).
  PackIndex(std::unique_ptr<const PackFile> file, const std::function<bool(const DeviceEntry&)>& wants);

  /// Visits the fronts of a request and what its records bar. Throws Error(io_error) if the file cannot be read any
  /// more, or was changed.
  void visit(KeyHash key, FrontVisitor& visitor);
  /// Visits the lines of all requests that have records; one may come twice. Throws as visit().
  void visit_requests(const std::function<void(std::string_view request)>& visit);
  /// Reads the records of all requests that were not visited yet, for what is wrong with them. Throws as visit().
  void check();
  /// Problems that were found and not taken before, "line N: ...". Beyond max_pack_problems of a pack just their number
  /// so far is said, once.
  std::vector<std::string> take_problems();

 private:
  // A request line with the lines that depend on it.
  struct Piece {
    KeyHash key;
    std::uint32_t begin = 0;  // bytes in the file, of at most max_pack_file
    std::uint32_t end = 0;
    std::uint32_t line = 0;  // number of its first
    std::uint32_t next = 0;  // with the same key, by its number from 1; 0: none
    const DeviceEntry* device = nullptr;
    bool read = false;
  };
  struct Candidate {
    FrontEntry entry;
    std::string config;
  };

  void scan(const std::function<bool(const DeviceEntry&)>& wants);
  void note(const PackLine& line, std::size_t begin, const std::function<bool(const DeviceEntry&)>& wants);
  void begin_piece(const PackLine& line, std::size_t begin);
  void end_piece(std::size_t end);
  void take_device(const PackLine& line, const std::function<bool(const DeviceEntry&)>& wants);
  void index();
  std::uint32_t* slot_of(KeyHash key);
  void read(Piece& piece, FrontVisitor& visitor);
  void take(const PackLine& line, const Piece& piece, FrontVisitor& visitor);
  void take_record(const PackLine& line, const Piece& piece, FrontVisitor& visitor);
  std::string_view text(std::string_view field);
  const AlgorithmVersion* version(const PackHead& head);
  void refuse(std::size_t line, std::string_view reason);

  const std::unique_ptr<const PackFile> file_;
  std::map<std::string, DeviceEntry> devices_;
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> slots_;                            // open addressing: numbers of pieces, from 1; 0: free
  std::unordered_map<std::string, AlgorithmVersion> versions_;  // by name, tab, digest as they stand in the pack

  // State of the pass.
  const DeviceEntry* device_ = nullptr;
  std::optional<Piece> piece_;     // the last one, still without its end
  std::size_t piece_records_ = 0;  // records in it
  std::size_t records_ = 0;
  std::size_t device_lines_ = 0;
  bool ended_ = false;

  // State of the piece that is being read; kept for their memory.
  std::vector<Candidate> candidates_;  // the first used_
  std::size_t used_ = 0;
  std::size_t read_records_ = 0;  // of the request that is asked for, over all its pieces
  std::vector<FrontEntry> entries_;
  std::string unescaped_;
  std::string key_text_;

  std::size_t refused_ = 0;
  bool told_rest_ = false;
  std::vector<std::string> problems_;  // not taken yet
};

}  // namespace kiln::cache
