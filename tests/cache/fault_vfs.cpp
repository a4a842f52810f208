#include "fault_vfs.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <random>
#include <stdexcept>

namespace kiln::cache::test {

// The file of the VFS below lies right behind it.
struct FaultFile {
  sqlite3_file base;
  FaultVfs* vfs;
  std::string* path;

  static FaultFile& of(sqlite3_file* file) { return *reinterpret_cast<FaultFile*>(file); }
  static sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<sqlite3_file*>(&of(file) + 1); }

  static int close(sqlite3_file* file) {
    delete of(file).path;
    return real(file)->pMethods->xClose(real(file));
  }
  static int read(sqlite3_file* file, void* to, int bytes, sqlite3_int64 offset) {
    const int fault = of(file).vfs->read();
    return fault != SQLITE_OK ? fault : real(file)->pMethods->xRead(real(file), to, bytes, offset);
  }
  static int write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
    const int fault = of(file).vfs->change(real(file), *of(file).path, true, from, bytes, offset);
    return fault != SQLITE_OK ? fault : real(file)->pMethods->xWrite(real(file), from, bytes, offset);
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    const int fault = of(file).vfs->change(real(file), *of(file).path, false, nullptr, 0, size);
    if (fault != SQLITE_OK) return fault;
    of(file).vfs->unflushed_.erase(*of(file).path);  // only what came after can still be lost
    return real(file)->pMethods->xTruncate(real(file), size);
  }
  static int sync(sqlite3_file* file, int flags) {
    const int fault = of(file).vfs->change(real(file), *of(file).path, false, nullptr, 0, -1);
    if (fault != SQLITE_OK) return fault;
    of(file).vfs->unflushed_.erase(*of(file).path);
    return real(file)->pMethods->xSync(real(file), flags);
  }
  static int size(sqlite3_file* file, sqlite3_int64* bytes) {
    return real(file)->pMethods->xFileSize(real(file), bytes);
  }
  static int lock(sqlite3_file* file, int level) {
    const int fault = of(file).vfs->lock(SQLITE_IOERR_LOCK);
    return fault != SQLITE_OK ? fault : real(file)->pMethods->xLock(real(file), level);
  }
  static int unlock(sqlite3_file* file, int level) { return real(file)->pMethods->xUnlock(real(file), level); }
  static int reserved(sqlite3_file* file, int* out) {
    return real(file)->pMethods->xCheckReservedLock(real(file), out);
  }
  static int control(sqlite3_file* file, int what, void* argument) {
    return real(file)->pMethods->xFileControl(real(file), what, argument);
  }
  static int sector(sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); }
  static int traits(sqlite3_file* file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); }
  static int shm_map(sqlite3_file* file, int page, int bytes, int extend, void volatile** out) {
    return real(file)->pMethods->xShmMap(real(file), page, bytes, extend, out);
  }
  static int shm_lock(sqlite3_file* file, int offset, int n, int flags) {
    const bool asks = (flags & SQLITE_SHM_LOCK) != 0;
    const int fault = asks ? of(file).vfs->lock(SQLITE_IOERR_SHMLOCK) : SQLITE_OK;
    return fault != SQLITE_OK ? fault : real(file)->pMethods->xShmLock(real(file), offset, n, flags);
  }
  static void shm_barrier(sqlite3_file* file) { real(file)->pMethods->xShmBarrier(real(file)); }
  static int shm_unmap(sqlite3_file* file, int remove) { return real(file)->pMethods->xShmUnmap(real(file), remove); }

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    static constexpr sqlite3_io_methods methods = {2,        close,       read,      write,   truncate, sync,   size,
                                                   lock,     unlock,      reserved,  control, sector,   traits, shm_map,
                                                   shm_lock, shm_barrier, shm_unmap, nullptr, nullptr};
    auto* self = static_cast<FaultVfs*>(vfs->pAppData);
    FaultFile& made = *new (file) FaultFile{};
    const int code = self->below_->xOpen(self->below_, name, real(file), flags, out_flags);
    if (real(file)->pMethods == nullptr) return code;
    made.vfs = self;
    made.path = new std::string(name == nullptr ? "" : name);
    made.base.pMethods = &methods;
    return code;
  }
  static int remove(sqlite3_vfs* vfs, const char* name, int sync_folder) {
    auto* self = static_cast<FaultVfs*>(vfs->pAppData);
    const int fault = self->change(nullptr, name, false, nullptr, 0, -1);
    if (fault != SQLITE_OK) return fault;
    self->unflushed_.erase(name);
    return self->below_->xDelete(self->below_, name, sync_folder);
  }
};

FaultVfs::FaultVfs(const Plan& plan) : plan_(plan), below_(sqlite3_vfs_find(nullptr)), vfs_(*below_) {
  vfs_.zName = "kiln-fault";
  vfs_.pNext = nullptr;
  vfs_.szOsFile = static_cast<int>(sizeof(FaultFile)) + below_->szOsFile;
  vfs_.pAppData = this;
  vfs_.xOpen = FaultFile::open;
  vfs_.xDelete = FaultFile::remove;
  if (sqlite3_vfs_register(&vfs_, 1) != SQLITE_OK) throw std::runtime_error("the faulty disk cannot be registered");
}

FaultVfs::~FaultVfs() {
  sqlite3_vfs_unregister(&vfs_);
  sqlite3_vfs_register(below_, 1);
}

int FaultVfs::read() {
  return reads_++ >= plan_.at && plan_.fault == Fault::unreadable ? SQLITE_IOERR_READ : SQLITE_OK;
}

int FaultVfs::lock(int failure) {
  const std::int64_t number = locks_++;
  const bool fails =
      plan_.fault == Fault::no_locks ? number >= plan_.at : plan_.fault == Fault::one_lock && number == plan_.at;
  return fails ? failure : SQLITE_OK;
}

int FaultVfs::change(sqlite3_file* real, const std::string& path, bool is_write, const void* data, int bytes,
                     std::int64_t offset) {
  const std::int64_t number = changes_++;
  const bool now = number == plan_.at, since = number >= plan_.at;
  const auto write_half = [&] {
    if (is_write) real->pMethods->xWrite(real, data, bytes / 2, offset);
  };
  switch (plan_.fault) {
    case Fault::killed:
      if (!now) return SQLITE_OK;
      write_half();
      std::raise(SIGKILL);
      return SQLITE_IOERR;
    case Fault::power_cut:
      if (is_write) remember(real, path, bytes, offset);
      if (now) cut_power();
      return SQLITE_OK;
    case Fault::full:
      if (!since || !is_write) return SQLITE_OK;
      write_half();
      return SQLITE_FULL;
    case Fault::error:
      return since ? SQLITE_IOERR_WRITE : SQLITE_OK;
    case Fault::one_error:
      return now ? SQLITE_IOERR_WRITE : SQLITE_OK;
    case Fault::unreadable:
    case Fault::no_locks:
    case Fault::one_lock:
    case Fault::none:
      return SQLITE_OK;
  }
  return SQLITE_OK;
}

void FaultVfs::remember(sqlite3_file* real, const std::string& path, int bytes, std::int64_t offset) {
  Undo undo;
  undo.offset = offset;
  sqlite3_int64 size = 0;
  real->pMethods->xFileSize(real, &size);
  undo.size = size;
  const std::int64_t there = std::min<std::int64_t>(bytes, std::max<std::int64_t>(size - offset, 0));
  undo.bytes.resize(static_cast<std::size_t>(there));
  if (there > 0) real->pMethods->xRead(real, undo.bytes.data(), static_cast<int>(there), offset);
  unflushed_[path].push_back(std::move(undo));
}

// Disks write in any order between two flushes; here each file loses a tail of its writes, which is one way it can go.
void FaultVfs::cut_power() const {
  std::mt19937_64 random(plan_.seed);
  for (const auto& [path, writes] : unflushed_) {
    const int file = ::open(path.c_str(), O_WRONLY);
    const std::size_t lost = random() % (writes.size() + 1);
    for (auto undo = writes.rbegin(); undo != writes.rbegin() + static_cast<std::ptrdiff_t>(lost); ++undo) {
      if (::pwrite(file, undo->bytes.data(), undo->bytes.size(), undo->offset) < 0) ::_exit(97);
      if (::ftruncate(file, undo->size) != 0) ::_exit(97);
    }
    ::close(file);
  }
  std::raise(SIGKILL);
  ::_exit(96);
}

}  // namespace kiln::cache::test
