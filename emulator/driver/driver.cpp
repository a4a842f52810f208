#include "driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <limits>
#include <utility>

#include "kiln/base/error.h"
#include "per_thread.h"

namespace kiln::emulator {
namespace {

// The one process-wide object, since the driver API names no instance.
struct Holder {
  std::mutex mutex;  // taken to create
  std::atomic<Driver*> driver = nullptr;
};

Holder& holder() {
  static Holder instance;
  return instance;
}

// Null where PTX is to tell the time.
std::unique_ptr<MachineClock> make_clock(const Settings& settings) {
  if (settings.clock == ClockChoice::ptx) return nullptr;
  try {
    return std::make_unique<MachineClock>(timing::DisassemblerOptions{});
  } catch (const Error& error) {
    if (settings.clock == ClockChoice::automatic && settings.card.empty()) return nullptr;
    throw SettingsError(
        fmt::format("KILN_EMULATOR_{}: {}", settings.card.empty() ? "CLOCK=machine" : "CARD", error.what()));
  }
}

// The card that a device's machine code is timed for: the user's, or the built-in one of that name.
timing::Card card_of(const DeviceModel& model, const Settings& settings) {
  if (settings.card.empty()) return timing::find_card(model.key);
  try {
    timing::Card card = timing::read_card(settings.card);
    const auto arch = static_cast<uint32_t>(10 * model.limits.major + model.limits.minor);
    if (card.arch == arch) return card;
    throw SettingsError(fmt::format("KILN_EMULATOR_CARD={}: it is of compute capability {}.{}, and {} has {}.{}",
                                    settings.card, card.arch / 10, card.arch % 10, model.key, model.limits.major,
                                    model.limits.minor));
  } catch (const Error& error) {
    throw SettingsError(fmt::format("KILN_EMULATOR_CARD: {}", error.what()));
  }
}

// Names the user's card in a device's name: by its file, without the folder and characters that a device's name cannot
// hold, and by a digest of its figures. Edited figures are another card.
std::string which_card(const timing::Card& card) {
  constexpr size_t most = 40;
  std::string file = std::filesystem::path(card.name).stem().string().substr(0, most);
  std::replace_if(
      file.begin(), file.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.'; }, '_');
  return fmt::format(" of {} {:.8}", file, timing::digest_of(card));
}

// Gives a device the counts of the card that machine code is timed for.
DeviceModel with_counts(DeviceModel model, const timing::Card& card) {
  DeviceLimits& limits = model.limits;
  const uint64_t memory_khz = uint64_t{card.dram_peak_gbs} * 4'000'000 / static_cast<uint64_t>(limits.bus_bits);
  limits.multiprocessors = static_cast<int>(card.sms);
  limits.clock_khz = static_cast<int>(1000 * card.clock_mhz);
  limits.memory_clock_khz = static_cast<int>(std::min<uint64_t>(memory_khz, std::numeric_limits<int>::max()));
  limits.l2_bytes = card.l2_bytes;
  limits.shared_per_multiprocessor = static_cast<int>(card.shared_bytes);
  limits.shared_reserved_per_block = static_cast<int>(card.shared_reserve);
  const int most_shared = limits.shared_per_multiprocessor - limits.shared_reserved_per_block;
  limits.shared_per_block_optin = std::min(limits.shared_per_block_optin, std::max(0, most_shared));
  limits.threads_per_multiprocessor = static_cast<int>(card.warps) * warp_size;
  limits.blocks_per_multiprocessor = static_cast<int>(card.blocks);
  return model;
}

// Times of different clocks are not to be compared: as far as programs can tell, another clock is another device.
std::string name_of(const DeviceModel& model, const std::optional<timing::Card>& card, bool of_user) {
  if (!card) return std::string(model.name);
  const std::string which = of_user ? which_card(*card) : "";
  return fmt::format("{} (machine-code clock {}{})", model.name, timing::model_version, which);
}

}  // namespace

Driver::Driver(Settings settings)
    : host_memory(std::numeric_limits<uint64_t>::max() / 4, "pinned host allocation"),
      settings_(std::move(settings)),
      clock_(make_clock(settings_)) {
  for (const DeviceModel* model : settings_.devices) {
    auto device = std::make_unique<Device>();
    device->ordinal = device_count();
    device->model = *model;
    if (clock_) device->card = card_of(*model, settings_);
    if (device->card && !settings_.card.empty()) device->model = with_counts(*model, *device->card);
    device->name = name_of(*model, device->card, !settings_.card.empty());
    device->primary_handle = contexts.reserve();
    devices_.push_back(std::move(device));
  }
}

void Driver::initialise() {
  const std::lock_guard lock(holder().mutex);
  if (holder().driver == nullptr) holder().driver = new Driver(Settings::read());
}

Driver* Driver::if_initialised() {
  return holder().driver;
}

Driver& Driver::instance() {
  Driver* driver = if_initialised();
  require(driver != nullptr, CUDA_ERROR_NOT_INITIALIZED);
  return *driver;
}

Device& Driver::device(int ordinal) const {
  require(ordinal >= 0 && ordinal < device_count(), CUDA_ERROR_INVALID_DEVICE);
  return *devices_[static_cast<size_t>(ordinal)];
}

std::shared_ptr<Context> Driver::create_context(Device& device, CUcontext handle) {
  const bool strict = settings_.check == CheckLevel::full;
  auto context = std::make_shared<Context>(device, handle, host_memory,
                                           strict ? AddressSpace::Fresh::unwritten : AddressSpace::Fresh::written);
  contexts.insert(handle, context);
  return context;
}

void Driver::destroy_context(CUcontext handle) {
  const std::shared_ptr<Context> context = contexts.remove(handle);
  require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  const auto lives_there = [&](const auto& object) { return object.context.lock() == context; };
  const std::lock_guard execution(context->execution());
  graph_executables.remove_if(lives_there);
  graph_nodes.remove_if(lives_there);
  graphs.remove_if(lives_there);
  functions.remove_if(lives_there);
  modules.remove_if(lives_there);
  events.remove_if(lives_there);
  streams.remove_if(lives_there);
  Timeline::synchronise(context->device().timeline.horizon());  // ending a context waits for its work
}

std::string Driver::last_fault() const {
  const std::lock_guard lock(mutex_);
  return last_fault_;
}

void Driver::fault(Context& context, CUresult error, const std::string& report) {
  if (!context.set_fault(error, report)) return;
  const std::lock_guard lock(mutex_);
  last_fault_ = report;
}

std::vector<CUcontext>& context_stack() {
  // Per thread by definition of the API: cuCtxSetCurrent acts on the calling host thread.
  static const PerThread<std::vector<CUcontext>> stack;
  return stack.get();
}

std::shared_ptr<Context> current_context() {
  const Driver& driver = Driver::instance();
  const std::vector<CUcontext>& stack = context_stack();
  require(!stack.empty() && stack.back() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  std::shared_ptr<Context> context = driver.contexts.find(stack.back());
  require(context != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  context->require_usable();
  return context;
}

std::shared_ptr<Context> context_or_current(CUcontext handle) {
  if (handle == nullptr) return current_context();
  std::shared_ptr<Context> context = Driver::instance().contexts.find(handle);
  require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  context->require_usable();
  return context;
}

void submit(const StreamUse& use, Work work) {
  Driver& driver = Driver::instance();
  if (driver.captures.add(use, work)) return;
  execute(driver, *use.context, *use.stream->track, work);
}

StreamUse use_stream(CUstream handle) {
  constexpr uintptr_t legacy = 1, per_thread = 2;
  const auto value = reinterpret_cast<uintptr_t>(handle);
  if (value <= per_thread) {
    std::shared_ptr<Context> context = current_context();
    std::shared_ptr<Stream> stream = value <= legacy ? context->legacy_stream() : context->per_thread_stream(context);
    return {std::move(context), std::move(stream)};
  }
  std::shared_ptr<Stream> stream = lookup(Driver::instance().streams, handle);
  std::shared_ptr<Context> context = usable_context_of(*stream);
  return {std::move(context), std::move(stream)};
}

}  // namespace kiln::emulator
