// A block's timeline as tracks, rows to be drawn: warps that do the same share one, the loads of each
// slot of an event are another.
//
//   BlockView view = view_block(function, arch, trace, dram_share);
//   view.tracks[1].name == "warps 4 to 7"      its slices: waits, products, stores
//   view.stages[0].name == "full[0]"          its slices: loads on their way, by generation
//   view.depths[0] == {.name = "full", .slots = 3, .most = 3, .mean = 2.4}
//
// Everything is of the first block of a cluster.
#pragma once

#include "explain/cost/timeline.h"
#include "ir/module.h"

namespace kiln::explain {

enum class SliceKind : std::uint8_t {
  kIssue,    // starts bulk or asynchronous copies
  kFlight,   // bytes on their way
  kProduct,  // on the tensor cores
  kWait,     // for an event, or for what the warp has started itself
  kBarrier,  // at a barrier
  kTrigger,  // arrives at an event
  kMove,     // memory to registers or through them
  kStore,    // registers to memory, and bulk stores
};
inline constexpr SliceKind kSliceKinds[] = {
    SliceKind::kIssue,   SliceKind::kFlight,  SliceKind::kProduct, SliceKind::kWait,
    SliceKind::kBarrier, SliceKind::kTrigger, SliceKind::kMove,    SliceKind::kStore};
[[nodiscard]] std::string_view name(SliceKind kind);         // "wait": a class of the page
[[nodiscard]] std::string_view description(SliceKind kind);  // "waits for an event or a copy"

struct Slice {
  SliceKind kind = SliceKind::kMove;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<ir::OpId> ops = {};  // that do it; without repetitions
  std::string what = {};           // "full[1], generation 2", "4 x m64n64k16.f32.bf16"
  ir::OpId released_by = {};       // a wait: what ended it; invalid: nothing had to
  std::int64_t bytes = 0;          // of global memory
  std::int64_t count = 1;          // instructions, or copies

  [[nodiscard]] std::int64_t cycles() const { return end - begin; }
};

// How long a track is at one thing, in cycles.
struct Share {
  std::string what;  // "waits for full"
  std::int64_t cycles = 0;
};

struct Track {
  std::string name;
  std::string role;            // "loads", "multiplies, stores"
  std::vector<Slice> slices;   // what the warps do, one after the other
  std::vector<Slice> running;  // what goes on meanwhile: products, asynchronous copies
  std::vector<Share> waits;    // by what is waited for, in order of appearance
  std::int64_t products = 0;   // cycles in which the tensor cores work for it

  [[nodiscard]] std::int64_t waiting() const;
};

// How many generations of an event (or executions of a copy) have loads on their way.
struct Depth {
  struct Step {
    std::int64_t at = 0;
    int depth = 0;
  };
  std::string name;  // "full"
  int slots = 0;     // of the event; 0: no event
  int most = 0;
  double mean = 0;  // from the first load to the last landing
  std::vector<Step> steps;
};

struct BlockView {
  std::int64_t block = 0;
  std::int64_t cycles = 0;
  bool cut = false;            // only the beginning is there
  std::size_t idle_warps = 0;  // have no track: nothing to do
  std::vector<Track> tracks;
  std::vector<Track> stages;  // slices alone
  std::vector<Depth> depths;
};

[[nodiscard]] BlockView view_block(const ir::Function& function, const target::Arch& arch,
                                   const sim::BlockTrace& trace, double dram_share);

}  // namespace kiln::explain
