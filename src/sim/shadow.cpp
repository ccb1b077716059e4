#include "sim/shadow.h"

#include <algorithm>

#include "support/check.h"

namespace kiln::sim {

bool covers(const LaneClocks& known, std::uint32_t agent, std::uint32_t lanes, Clock clock) {
  for (const LaneClock& one : known) {
    if (one.agent == agent && one.clock > clock) lanes &= ~one.lanes;
  }
  return lanes == 0;
}

Shadow::Shadow(std::size_t bytes, unsigned granule_bits, bool per_block, bool initialised)
    : granule_bits_(granule_bits),
      per_block_(per_block),
      initialised_(initialised),
      lines_((bytes >> kLineBits) + 1),
      line_writers_(lines_),
      writers_(lines_ << (kLineBits - granule_bits)) {
  KILN_CHECK(granule_bits <= kLineBits, "granules of {} bytes", 1U << granule_bits);
}

void Shadow::begin_launch(const Era* era, const Readers& readers) {
  era_ = era;
  remembered_ = readers;
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
  const std::size_t granules = lines_ << granules_bits();
  line_readers_ = slots_ == 0 ? Zeros<Reader>() : Zeros<Reader>(lines_ * slots_);
  readers_ = slots_ == 0 ? Zeros<Reader>() : Zeros<Reader>(granules * slots_);
  KILN_CHECK(slots_ != 0 || !readers.updates, "updates by nobody");
  updates_ = readers.updates ? Zeros<Reader>(granules * slots_) : Zeros<Reader>();
}

std::unique_ptr<Shadow> Shadow::overlay(const Era* era) const {
  auto out =
      std::make_unique<Shadow>(lines_ * kLineBytes - 1, granule_bits_, per_block_, initialised_);
  out->below_ = this;
  out->begin_launch(era, remembered_);
  return out;
}

bool Shadow::touched(std::size_t granule) const {
  if (writer_of(granule).clock != 0) return true;
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    if (reader_of(granule, slot).clock != 0) return true;
  }
  return false;
}

bool Shadow::are_apart(const std::vector<const Shadow*>& overlays, std::size_t granule) {
  const Shadow* wrote = nullptr;
  for (const Shadow* one : overlays) {
    if (one->writer_of(granule).clock != 0) wrote = one;
  }
  return wrote == nullptr || std::all_of(overlays.begin(), overlays.end(), [&](const Shadow* one) {
           return one == wrote || !one->touched(granule);
         });
}

bool Shadow::are_apart(const std::vector<const Shadow*>& overlays) {
  const Shadow& first = *overlays.front();
  const std::size_t each = std::size_t{1} << first.granules_bits();
  for (std::size_t line = 0; line < first.lines_; ++line) {
    const auto wrote = [&](const Shadow* one) { return one->wrote_line(line); };
    if (std::none_of(overlays.begin(), overlays.end(), wrote)) continue;
    for (std::size_t g = line * each; g < (line + 1) * each; ++g) {
      if (!are_apart(overlays, g)) return false;
    }
  }
  return true;
}

void Shadow::absorb(const Shadow& overlay) {
  const std::size_t each = std::size_t{1} << granules_bits();
  for (std::size_t line = 0; line < lines_; ++line) {
    if (!overlay.wrote_line(line)) continue;
    if (overlay.line_writers_[line].instruction != kSplit) {
      line_writers_[line] = overlay.line_writers_[line];
      continue;
    }
    split_writer(line);
    for (std::size_t g = line * each; g < (line + 1) * each; ++g) {
      if (overlay.writers_[g].clock != 0) writers_[g] = overlay.writers_[g];
    }
  }
}

void Shadow::split_writer(std::size_t line) {
  Writer& whole = line_writers_[line];
  if (whole.instruction == kSplit) return;
  std::fill_n(&writers_[line << granules_bits()], std::size_t{1} << granules_bits(), whole);
  whole.instruction = kSplit;
}

void Shadow::split_reader(std::size_t line, std::size_t slot) {
  Reader& whole = line_readers_[line * slots_ + slot];
  if (whole.instruction == kSplit) return;
  const std::size_t first = line << granules_bits();
  for (std::size_t i = 0; i >> granules_bits() == 0; ++i) {
    readers_[(first + i) * slots_ + slot] = whole;
  }
  whole.instruction = kSplit;
}

void Shadow::join_reader(std::size_t line, std::size_t slot) {
  const std::size_t first = line << granules_bits();
  const Reader& one = readers_[first * slots_ + slot];
  for (std::size_t i = 1; i >> granules_bits() == 0; ++i) {
    if (!(readers_[(first + i) * slots_ + slot] == one)) return;
  }
  line_readers_[line * slots_ + slot] = one;
}

void Shadow::note_read(std::size_t begin, std::size_t end, const Actor& actor) {
  const std::size_t line = begin >> kLineBits;
  const std::size_t slot = slot_of_[actor.agent];
  split_reader(line, slot);
  for (std::size_t g = begin >> granule_bits_; g <= (end - 1) >> granule_bits_; ++g) {
    Reader& reader = readers_[g * slots_ + slot];
    if (reader.clock == actor.clock) {
      reader.add(static_cast<std::uint16_t>(actor.thread % kLanes));
      continue;
    }
    if (is_of_other_block(reader)) {
      const std::size_t last = slots_ - 1;
      split_reader(line, last);
      readers_[g * slots_ + last] = reader;
      Clock& latest = line_readers_[line * slots_ + last].clock;
      latest = std::max(latest, reader.clock);
    }
    reader.begin(actor);
  }
  Reader& whole = line_readers_[line * slots_ + slot];
  whole.clock = std::max(whole.clock, actor.clock);
  if (end - begin == kLineBytes) join_reader(line, slot);
}

bool Shadow::read_follows(std::size_t granule, const Actor& actor, Conflict& conflict) const {
  const Writer& writer = writer_of(granule);
  if (may_read(writer, actor) || is_written_below(granule)) return true;
  // What nobody wrote before the first update was reported then.
  const bool updated =
      remembered_.updates && per_block_ && writer.clock < era_->block_start && is_updated(granule);
  return updated || blame_writer(granule, conflict);
}

bool Shadow::read_granules(std::size_t begin, std::size_t end, const Actor& actor,
                           Conflict& conflict) {
  bool follows = true;
  for (std::size_t g = begin >> granule_bits_; follows && g <= (end - 1) >> granule_bits_; ++g) {
    follows = read_follows(g, actor, conflict) &&
              (!remembered_.updates || follows_updates(g, actor, conflict));
  }
  if (slots_ != 0) note_read(begin, end, actor);
  return follows;
}

bool Shadow::write_granules(std::size_t begin, std::size_t end, const Actor& actor,
                            const Writer& writer, Conflict& conflict) {
  const std::size_t line = begin >> kLineBits;
  const bool after_reads = slots_ == 0 || follows_reads(line, actor);
  bool follows = true;
  for (std::size_t g = begin >> granule_bits_; follows && g <= (end - 1) >> granule_bits_; ++g) {
    follows = may_overwrite(writer_of(g), actor) ? after_reads || follows_reads(g, actor, conflict)
                                                 : blame_writer(g, conflict);
    follows = follows && (!remembered_.updates || follows_updates(g, actor, conflict));
  }
  if (end - begin == kLineBytes) {
    line_writers_[line] = writer;
    return follows;
  }
  split_writer(line);
  for (std::size_t g = begin >> granule_bits_; g <= (end - 1) >> granule_bits_; ++g) {
    writers_[g] = writer;
  }
  return follows;
}

void Shadow::note_update(std::size_t granule, const Actor& actor) {
  Reader* const updates = &updates_[granule * slots_];
  Reader& update = updates[slot_of_[actor.agent]];
  if (update.clock == actor.clock) {
    update.add(static_cast<std::uint16_t>(actor.thread % kLanes));
    return;
  }
  if (is_of_other_block(update)) updates[slots_ - 1] = update;
  update.begin(actor);
}

bool Shadow::update_granules(std::size_t begin, std::size_t end, const Actor& actor,
                             Conflict& conflict) {
  bool follows = true;
  for (std::size_t g = begin >> granule_bits_; g <= (end - 1) >> granule_bits_; ++g) {
    follows = follows && read_follows(g, actor, conflict) && follows_reads(g, actor, conflict);
    // What its own thread has on its way comes before it no more than what others have.
    const Writer& writer = writer_of(g);
    if (follows && actor.asynchronous && writer.clock >= era_->block_start &&
        !actor.follows(writer.thread, writer.clock)) {
      follows = blame_writer(g, conflict);
    }
    note_update(g, actor);
    // What nobody had written has content now.
    if (per_block_ || writer_of(g).clock != 0) continue;
    split_writer(begin >> kLineBits);
    writers_[g].clock = kBeforeLaunches;
  }
  return follows;
}

void Shadow::write_between(std::size_t address, std::size_t bytes) {
  for_each_line(address, bytes, [&](std::size_t begin, std::size_t end) {
    split_writer(begin >> kLineBits);
    for (std::size_t g = begin >> granule_bits_; g <= (end - 1) >> granule_bits_; ++g) {
      if (writers_[g].clock == 0) writers_[g].clock = kBeforeLaunches;
    }
  });
}

void Shadow::land(std::size_t address, std::size_t bytes, const Actor& actor) {
  const auto lands = [&](Writer& writer) {
    if (writer.thread != (actor.thread | kInFlight)) return;
    writer.thread = actor.thread;
    writer.clock = actor.clock;
  };
  for_each_line(address, bytes, [&](std::size_t begin, std::size_t end) {
    const std::size_t line = begin >> kLineBits;
    if (end - begin == kLineBytes && line_writers_[line].instruction != kSplit) {
      lands(line_writers_[line]);
      return;
    }
    split_writer(line);
    for (std::size_t g = begin >> granule_bits_; g <= (end - 1) >> granule_bits_; ++g) {
      lands(writers_[g]);
    }
  });
}

bool Shadow::blame_writer(std::size_t granule, Conflict& conflict) const {
  const Writer& writer = writer_of(granule);
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

bool Shadow::follows_read(const Reader& reader, std::size_t slot, const Actor& actor) const {
  if (reader.clock < (per_block_ ? era_->block_start : era_->launch_start)) return true;
  if (reader.clock < era_->block_start) return false;
  // Some of its granules may have been read by another block.
  if (reader.instruction == kSplit && !per_block_) return false;
  const std::uint32_t agent = agent_of_[slot];
  const Clock* seen = actor.seen_reads == nullptr ? actor.seen : actor.seen_reads;
  if (seen[agent] > reader.clock) return true;
  if (actor.own != nullptr && actor.own->cover(agent, reader.clock)) return true;
  if (reader.instruction == kSplit) return false;
  const std::uint32_t lanes = reader.lanes();
  if (!actor.asynchronous && agent == actor.agent && lanes == 1U << actor.thread % kLanes) {
    return true;
  }
  return actor.lanes != nullptr && covers(*actor.lanes, agent, lanes, reader.clock);
}

bool Shadow::follows_reads(std::size_t line, const Actor& actor) const {
  const Reader* readers = &line_readers_[line * slots_];
  const Clock* seen = actor.seen_reads == nullptr ? actor.seen : actor.seen_reads;
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    // Most were long ago, or have been waited for.
    const Clock clock = readers[slot].clock;
    if (per_block_ && (clock < era_->block_start || seen[agent_of_[slot]] > clock)) continue;
    if (!follows_read(readers[slot], slot, actor)) return false;
  }
  return true;
}

bool Shadow::is_updated(std::size_t granule) const {
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    if (updates_[granule * slots_ + slot].clock >= era_->block_start) return true;
  }
  return false;
}

bool Shadow::follows_updates(std::size_t granule, Actor actor, Conflict& conflict) const {
  actor.seen_reads = nullptr;  // an update writes as well
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    const Reader& update = updates_[granule * slots_ + slot];
    if (follows_read(update, slot, actor)) continue;
    blame_reader(update, slot, granule, conflict);
    conflict.other_wrote = conflict.other_atomic = true;
    return false;
  }
  return true;
}

bool Shadow::follows_reads(std::size_t granule, const Actor& actor, Conflict& conflict) const {
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    const Reader& reader = reader_of(granule, slot);
    if (!follows_read(reader, slot, actor)) return blame_reader(reader, slot, granule, conflict);
  }
  return true;
}

bool Shadow::blame_reader(const Reader& reader, std::size_t slot, std::size_t granule,
                          Conflict& conflict) const {
  const bool other_block = reader.clock < era_->block_start;
  const std::uint32_t agent = other_block ? 0 : agent_of_[slot];
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

}  // namespace kiln::sim
