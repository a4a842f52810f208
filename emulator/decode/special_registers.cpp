#include "special_registers.h"

#include <array>

namespace kiln::emulator {
namespace {

struct Entry {
  std::string_view name;
  Special what;
};

// A launch without clusters is one of clusters of a single block.
constexpr std::array register_entries = {
    Entry{"%tid.x", Special::tid_x},
    Entry{"%tid.y", Special::tid_y},
    Entry{"%tid.z", Special::tid_z},
    Entry{"%ntid.x", Special::ntid_x},
    Entry{"%ntid.y", Special::ntid_y},
    Entry{"%ntid.z", Special::ntid_z},
    Entry{"%ctaid.x", Special::ctaid_x},
    Entry{"%ctaid.y", Special::ctaid_y},
    Entry{"%ctaid.z", Special::ctaid_z},
    Entry{"%nctaid.x", Special::nctaid_x},
    Entry{"%nctaid.y", Special::nctaid_y},
    Entry{"%nctaid.z", Special::nctaid_z},
    Entry{"%clusterid.x", Special::ctaid_x},
    Entry{"%clusterid.y", Special::ctaid_y},
    Entry{"%clusterid.z", Special::ctaid_z},
    Entry{"%nclusterid.x", Special::nctaid_x},
    Entry{"%nclusterid.y", Special::nctaid_y},
    Entry{"%nclusterid.z", Special::nctaid_z},
    Entry{"%cluster_ctaid.x", Special::zero},
    Entry{"%cluster_ctaid.y", Special::zero},
    Entry{"%cluster_ctaid.z", Special::zero},
    Entry{"%cluster_nctaid.x", Special::one},
    Entry{"%cluster_nctaid.y", Special::one},
    Entry{"%cluster_nctaid.z", Special::one},
    Entry{"%cluster_ctarank", Special::zero},
    Entry{"%cluster_nctarank", Special::one},
    Entry{"%laneid", Special::laneid},
    Entry{"%warpid", Special::warpid},
    Entry{"%nwarpid", Special::nwarpid},
    Entry{"%smid", Special::zero},
    Entry{"%nsmid", Special::one},
    Entry{"%gridid", Special::zero},
    Entry{"%lanemask_eq", Special::lanemask_eq},
    Entry{"%lanemask_le", Special::lanemask_le},
    Entry{"%lanemask_lt", Special::lanemask_lt},
    Entry{"%lanemask_ge", Special::lanemask_ge},
    Entry{"%lanemask_gt", Special::lanemask_gt},
    Entry{"%dynamic_smem_size", Special::dynamic_shared_bytes},
    Entry{"%total_smem_size", Special::total_shared_bytes},
    Entry{"%aggr_smem_size", Special::total_shared_bytes},
    Entry{"%current_graph_exec", Special::zero},
};

}  // namespace

std::optional<Special> special_named(std::string_view name) {
  for (const Entry& entry : register_entries) {
    if (entry.name == name) return entry.what;
  }
  if (name.starts_with("%envreg")) return Special::zero;
  return std::nullopt;
}

std::optional<Clock> clock_named(std::string_view name) {
  if (name == "%clock" || name == "%clock64") return Clock{};
  if (name == "%clock_hi") return Clock{.high = true};
  if (name == "%globaltimer" || name == "%globaltimer_lo") return Clock{.nanoseconds = true};
  if (name == "%globaltimer_hi") return Clock{.nanoseconds = true, .high = true};
  return std::nullopt;
}

}  // namespace kiln::emulator
