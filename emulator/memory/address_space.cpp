#include "memory/address_space.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace kiln::emulator {
namespace {

constexpr uint64_t quarantine_ranges = 512;
constexpr uint64_t quarantine_bytes = uint64_t{64} << 30;  // of address space, not of memory

uint64_t page_bytes() {
  static const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// One guard on each side. More than a page, so that an access some elements past the end still meets it.
uint64_t guard_bytes() {
  return 16 * page_bytes();
}

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

// `bytes` of zeroed memory between guards, or nothing.
std::optional<uint64_t> map_guarded(uint64_t bytes) {
  const uint64_t guard = guard_bytes();
  void* reserved = mmap(nullptr, bytes + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return std::nullopt;
  const uint64_t begin = reinterpret_cast<uintptr_t>(reserved) + guard;
  if (mprotect(pointer(begin), bytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(reserved, bytes + 2 * guard);
    return std::nullopt;
  }
  return begin;
}

void unmap_guarded(uint64_t begin, uint64_t bytes) {
  munmap(pointer(begin - guard_bytes()), bytes + 2 * guard_bytes());
}

// Tracking takes a flag and marks for each byte of an allocation.
constexpr uint64_t tracked_bytes = 1 + sizeof(PieceMarks);

// Zeros that cost memory where they are touched only; null if there is no address space left. Shared, though nobody
// shares it: a mark is read before it is written, and of private memory the system would first map the page of zeros,
// then copy it at the write and interrupt all cores to forget it. That took half of a kernel's time.
uint8_t* map_tracking(uint64_t bytes) {
  void* const flags =
      mmap(nullptr, bytes * tracked_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return flags == MAP_FAILED ? nullptr : static_cast<uint8_t*>(flags);
}

// Makes tracked memory zero again, and gives it back to the system if that can be.
void forget(void* begin, uint64_t bytes) {
  if (madvise(begin, bytes, MADV_REMOVE) != 0) std::memset(begin, 0, bytes);
}

}  // namespace

AddressSpace::AddressSpace(uint64_t capacity, std::string noun, Fresh fresh)
    : capacity_(capacity), noun_(std::move(noun)), fresh_(fresh) {}

AddressSpace::~AddressSpace() {
  for (const auto& [begin, entry] : valid_) {
    if (entry.mapped_bytes > 0) unmap_guarded(begin, entry.mapped_bytes);
    if (entry.written != nullptr) munmap(entry.written, entry.mapped_bytes * tracked_bytes);
  }
  for (const Freed& freed : freed_) unmap_guarded(freed.region.begin, freed.mapped_bytes);
}

std::optional<uint64_t> AddressSpace::allocate(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > capacity_ - used_bytes_) return std::nullopt;
  const uint64_t mapped_bytes = (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
  const std::optional<uint64_t> begin = map_guarded(mapped_bytes);
  if (!begin) return std::nullopt;
  uint8_t* const flags = fresh_ == Fresh::unwritten ? map_tracking(mapped_bytes) : nullptr;
  const std::string name = fmt::format("{} {} of {} bytes", noun_, ++allocations_, bytes);
  valid_.emplace(*begin, Entry{.bytes = bytes, .mapped_bytes = mapped_bytes, .name = name, .written = flags});
  used_bytes_ += bytes;
  ++version_;
  return begin;
}

bool AddressSpace::free(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = valid_.find(address);
  if (found == valid_.end() || found->second.mapped_bytes == 0) return false;
  quarantine(address, found->second);
  used_bytes_ -= found->second.bytes;
  valid_.erase(found);
  ++version_;
  return true;
}

// The pages go back to the system at once; only their addresses stay taken.
void AddressSpace::quarantine(uint64_t address, const Entry& entry) {
  madvise(pointer(address), entry.mapped_bytes, MADV_DONTNEED);
  mprotect(pointer(address), entry.mapped_bytes, PROT_NONE);
  if (entry.written != nullptr) munmap(entry.written, entry.mapped_bytes * tracked_bytes);
  freed_.push_back({Region{address, address + entry.bytes, entry.name}, entry.mapped_bytes});
  freed_bytes_ += entry.mapped_bytes;
  while (freed_.size() > quarantine_ranges || (freed_bytes_ > quarantine_bytes && freed_.size() > 1)) {
    const Freed& oldest = freed_.front();
    unmap_guarded(oldest.region.begin, oldest.mapped_bytes);
    freed_bytes_ -= oldest.mapped_bytes;
    freed_.pop_front();
  }
}

bool AddressSpace::overlaps(uint64_t begin, uint64_t bytes) const {
  const auto after = valid_.lower_bound(begin);
  if (after != valid_.end() && after->first - begin < bytes) return true;
  if (after == valid_.begin()) return false;
  const auto before = std::prev(after);
  return begin - before->first < before->second.bytes;
}

bool AddressSpace::add(uint64_t begin, uint64_t bytes, std::string name) {
  const std::lock_guard lock(mutex_);
  if (overlaps(begin, bytes)) return false;
  valid_.emplace(begin, Entry{.bytes = bytes, .name = std::move(name)});
  ++version_;
  return true;
}

bool AddressSpace::add(RegionGroup group) {
  const std::lock_guard lock(mutex_);
  const uint64_t begin = group->front().begin, bytes = group->back().end - begin;
  if (overlaps(begin, bytes)) return false;
  valid_.emplace(begin, Entry{.bytes = bytes, .group = std::move(group)});
  ++version_;
  return true;
}

bool AddressSpace::remove(uint64_t begin) {
  const std::lock_guard lock(mutex_);
  const auto found = valid_.find(begin);
  if (found == valid_.end() || found->second.mapped_bytes != 0) return false;
  valid_.erase(found);
  ++version_;
  return true;
}

std::optional<AddressSpace::Range> AddressSpace::find(uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto above = valid_.upper_bound(address);
  if (above == valid_.begin()) return std::nullopt;
  const auto& [begin, entry] = *std::prev(above);
  if (address - begin >= entry.bytes) return std::nullopt;
  if (!entry.group) return Range{begin, entry.bytes};
  const Region& region = *std::prev(std::ranges::upper_bound(*entry.group, address, {}, &Region::begin));
  return address < region.end ? std::optional(Range{region.begin, region.end - region.begin}) : std::nullopt;
}

bool AddressSpace::contains(uint64_t address, uint64_t bytes) const {
  const std::optional<Range> range = find(address);
  return range && bytes <= range->bytes - (address - range->begin);
}

/// The flags of the bytes from `address` on; null if they count as written. The lock is held.
uint8_t* AddressSpace::flags_of(uint64_t address) const {
  const auto above = valid_.upper_bound(address);
  if (above == valid_.begin()) return nullptr;
  const auto& [begin, entry] = *std::prev(above);
  return entry.written == nullptr || address - begin >= entry.bytes ? nullptr : entry.written + (address - begin);
}

PieceMarks* AddressSpace::Entry::marks() const {
  return written == nullptr ? nullptr : reinterpret_cast<PieceMarks*>(written + mapped_bytes);
}

uint32_t AddressSpace::next_launch() {
  const std::lock_guard lock(mutex_);
  if (launch_ == most_launches) {
    launch_ = 0;
    for (const auto& [begin, entry] : valid_) {
      if (entry.written != nullptr) forget(entry.marks(), entry.mapped_bytes * sizeof(PieceMarks));
    }
  }
  return ++launch_;
}

void AddressSpace::mark_written(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (uint8_t* const flags = flags_of(address)) std::memset(flags, 1, bytes);
}

void AddressSpace::mark_copied(uint64_t address, uint64_t source, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  uint8_t* const to = flags_of(address);
  const uint8_t* const from = flags_of(source);
  if (to != nullptr && from != nullptr) std::memmove(to, from, bytes);
  if (to != nullptr && from == nullptr) std::memset(to, 1, bytes);
}

std::string AddressSpace::describe(uint64_t address) const {
  RegionTable::Contents contents;
  list(contents);
  return RegionTable(std::move(contents)).describe(address);
}

uint64_t AddressSpace::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return capacity_ - used_bytes_;
}

uint64_t AddressSpace::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

uint64_t AddressSpace::list(RegionTable::Contents& to) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [begin, entry] : valid_) {
    if (entry.group) {
      to.groups.push_back(entry.group);
    } else {
      to.regions.push_back({begin, begin + entry.bytes, entry.name, entry.written, entry.marks()});
    }
  }
  for (const Freed& range : freed_) to.freed.push_back(range.region);
  return version_;
}

}  // namespace kiln::emulator
