#include "sim/shadow.h"

#include <new>

namespace kiln::sim {

bool covers(const LaneClocks& known, std::uint32_t agent, std::uint32_t lanes, Clock clock) {
  for (const LaneClock& one : known) {
    if (one.agent == agent && one.clock > clock) lanes &= ~one.lanes;
  }
  return lanes == 0;
}

void Shadow::begin_launch(const Era* era, const Readers& readers) {
  era_ = era;
  readers_of_ = readers;
  slot_of_.assign(readers.all.count(), 0);
  agent_of_.clear();
  const auto add = [&](std::uint32_t agent) {
    slot_of_[agent] = static_cast<std::uint32_t>(agent_of_.size());
    agent_of_.push_back(agent);
  };
  for (std::uint32_t block = readers.first; block < readers.first + readers.blocks; ++block) {
    for (std::uint32_t i = 0; i < readers.agents; ++i) add(block * readers.all.each() + i);
  }
  for (std::uint32_t block = 0; readers.slots && block < readers.all.blocks; ++block) {
    for (std::uint32_t i = 0; i < readers.all.slots; ++i) add(readers.all.slot(block, i));
  }
  const std::size_t agents = agent_of_.size();
  slots_ = agents == 0 ? 0 : agents + (per_block_ ? 0 : 1);
  readers_.reset();
  if (slots_ == 0) return;
  const std::size_t count = writers_.size() * slots_;
  readers_.reset(static_cast<Reader*>(std::calloc(count, sizeof(Reader))));
  if (readers_ == nullptr)
    ::operator delete(::operator new(count * sizeof(Reader)));  // fails alike
}

void Shadow::land(std::size_t address, std::size_t bytes, const Actor& actor) {
  const std::size_t last = (address + bytes - 1) >> granule_bits_;
  for (std::size_t g = address >> granule_bits_; g <= last; ++g) {
    Writer& writer = writers_[g];
    if (writer.thread != (actor.thread | kInFlight)) continue;
    writer.thread = actor.thread;
    writer.clock = actor.clock;
  }
}

bool Shadow::blame_writer(std::size_t granule, Conflict& conflict) const {
  const Writer& writer = writers_[granule];
  conflict.address = granule << granule_bits_;
  conflict.other_wrote = true;
  conflict.thread = static_cast<std::uint16_t>(writer.thread & ~kInFlight);
  conflict.agent = conflict.thread / kLanes;
  conflict.instruction = writer.instruction;
  conflict.clock = writer.clock;
  if (writer.clock < (per_block_ ? era_->block_start : era_->launch_start)) {
    conflict.kind = ConflictKind::kUninitialised;
  } else if (writer.clock < era_->block_start) {
    conflict.kind = ConflictKind::kOtherBlock;
  } else if ((writer.thread & kInFlight) != 0) {
    conflict.kind = ConflictKind::kInFlight;
  } else {
    conflict.kind = ConflictKind::kUnordered;
  }
  return false;
}

bool Shadow::follows_reads(std::size_t granule, const Actor& actor, Conflict& conflict) const {
  const Clock oldest = per_block_ ? era_->block_start : era_->launch_start;
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    const Reader& reader = readers_[granule * slots_ + slot];
    if (reader.clock < oldest) continue;
    const bool other_block = reader.clock < era_->block_start;
    const std::uint32_t agent = other_block ? 0 : agent_of_[slot];
    if (!other_block) {
      const Clock* seen = actor.seen_reads == nullptr ? actor.seen : actor.seen_reads;
      if (seen[agent] > reader.clock) continue;
      if (actor.own != nullptr && actor.own->cover(agent, reader.clock)) continue;
      const std::uint32_t lanes = reader.lanes();
      if (agent == actor.agent && lanes == 1U << actor.thread % kLanes) continue;
      if (actor.lanes != nullptr && covers(*actor.lanes, agent, lanes, reader.clock)) continue;
    }
    conflict.kind = other_block ? ConflictKind::kOtherBlock : ConflictKind::kUnordered;
    conflict.address = granule << granule_bits_;
    conflict.other_wrote = false;
    conflict.agent = agent;
    conflict.thread = other_block || reader.first_lane != reader.last_lane
                          ? Conflict::kSeveral
                          : static_cast<std::uint16_t>(agent * kLanes + reader.first_lane);
    conflict.instruction = reader.instruction;
    conflict.clock = reader.clock;
    return false;
  }
  return true;
}

}  // namespace kiln::sim
