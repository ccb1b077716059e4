// Counting what a GPU would have done: issues, wavefronts of shared memory, sectors of global
// memory.
//
// One request is what a warp sends at once: the address of each taking part lane, all of one width.
//   32 lanes x 16 bytes, rows of a 16x16 f16 tile without swizzle: quarter warps of 8 lanes, each
//   8 * 16 = 128 consecutive bytes                                   -> 4 phases, no conflict
//   ldmatrix of 8 rows with a pitch of 32 bytes: banks 0-3, 8-11, 16-19, 24-27, then again
//                                                                    -> 1 extra wavefront a matrix
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/index_expr.h"
#include "sim/sim.h"
#include "support/check.h"

namespace kiln::sim {

enum class Issue : std::uint8_t {
  kLoadGlobal,
  kStoreGlobal,
  kLoadShared,
  kStoreShared,
  kAsyncCopy,
  kBarrierBlock,
  kBarrierGroup4,
  kBarrierGroup,
  kWait,
  kArrive,
  kEventWait,
};
inline constexpr std::size_t kIssues = 11;

// The addresses of one request.
struct Request {
  std::array<std::int64_t, kLanes> address;
  std::uint32_t count = 0;

  void clear() { count = 0; }
  void add(std::int64_t at) {
    KILN_CHECK(count < kLanes, "a request of more than {} lanes", count);
    address[count++] = at;
  }
};

// What has been counted so far for one operation.
struct Traffic {
  std::int64_t bytes_read = 0;  // of global memory
  std::int64_t bytes_written = 0;
  std::int64_t wavefronts = 0;
  std::int64_t requests = 0;
  std::int64_t sectors = 0;  // of global memory
  std::int64_t lines = 0;
};

class Tally {
 public:
  void issue(Issue what, std::int64_t bytes = 1);
  // A request of `bytes` bytes a lane.
  // Those without lanes are not issued.
  void global(Issue what, const Request& request, std::int64_t bytes);
  void shared(Issue what, const Request& request, std::int64_t bytes);
  // Atomic operations of the named instruction: of those on one word one comes after the other.
  void global_atomic(std::size_t interned, const Request& request, std::int64_t bytes);
  void shared_atomic(std::size_t interned, const Request& request, std::int64_t bytes);
  // The shared memory side of an instruction counted elsewhere: `ldmatrix` rows, `cp.async`.
  void shared_wavefronts(const Request& request, std::int64_t bytes);
  // The global side of `cp.async`.
  void sectors(const Request& request, std::int64_t bytes);
  void read_shared(std::int64_t bytes) { here().bytes_shared_read += weight_ * bytes; }
  void wrote_shared(std::int64_t bytes) { here().bytes_shared_written += weight_ * bytes; }
  void read_global(std::int64_t bytes) { here().bytes_global_read += weight_ * bytes; }
  void wrote_global(std::int64_t bytes) { here().bytes_global_written += weight_ * bytes; }
  // A box of a bulk copy: bytes and sectors of global memory, bytes of shared memory.
  void bulk(bool loads, std::int64_t global_bytes, std::int64_t sectors, std::int64_t shared_bytes);

  // A number for the named instruction, and one or more issues of it.
  std::size_t intern(std::string_view instruction);
  void issue(std::size_t interned, std::int64_t times);

  // An instruction of a warp is executed; only counted by account.
  void execute() {
    if (where_) here().executions += weight_;
  }

  // What an operation has counted, to be added again.
  class Counted;
  [[nodiscard]] Counted mark();  // all so far, of the account of here and now
  [[nodiscard]] Counted since(const Counted& mark);
  void add(const Counted& counted);

  // From here on counts belong to the account (less than `accounts`) that `where` names when they
  // are made. Without this there is one account. An empty `where`: to the first.
  using Where = std::function<std::size_t()>;
  void attribute(Where where, std::size_t accounts);
  // From here on everything counts this many times.
  void weigh(std::int64_t weight) { weight_ = weight; }
  [[nodiscard]] std::int64_t weight() const { return weight_; }
  // Of the account of here and now, weighed.
  [[nodiscard]] Traffic traffic();

  // A tally that knows the same names and has counted nothing; and what such a one has counted.
  [[nodiscard]] Tally fresh() const;
  void add(const Tally& other);

  [[nodiscard]] Counters counters() const;  // of all accounts
  [[nodiscard]] std::vector<Counters> by_account() const;

 private:
  static constexpr std::size_t kWidths = 5;  // 1, 2, 4, 8, 16 bytes
  struct Account {
    Counters counters;  // but for the instructions
    std::array<std::array<std::int64_t, kWidths>, kIssues> fixed = {};
    std::vector<std::int64_t> named;  // by interned number; may be shorter
  };
  [[nodiscard]] static std::int64_t& number(Account& account, std::size_t at);
  [[nodiscard]] static std::size_t numbers(const Account& account);

  [[nodiscard]] Account& account() { return accounts_[where_ ? where_() : 0]; }
  [[nodiscard]] Counters& here() { return account().counters; }
  void add_to(Counters& out, const Account& account) const;

  std::vector<Account> accounts_{1};
  Where where_;
  std::int64_t weight_ = 1;
  std::vector<std::string> names_;  // by interned number
};

// Numbers of an account that are not 0, in units of one execution.
class Tally::Counted {
 private:
  friend class Tally;
  struct Number {
    std::size_t at = 0;  // see Tally::number
    std::int64_t count = 0;
  };
  std::vector<Number> numbers_;
};

// Shared memory: word w of 4 bytes lies in bank w % 32, and each bank serves one word at a time.
inline constexpr int kBanks = 32;
inline constexpr int kBankBytes = 4;

// The lanes of a warp whose accesses of `bytes` each (1 to 16, a power of two) are served together,
// 128 bytes at most: 32 of up to 4 bytes, 16 of 8, 8 of 16.
[[nodiscard]] constexpr int lanes_in_phase(std::int64_t bytes) {
  return bytes <= kBankBytes ? kBanks : static_cast<int>(kBanks * kBankBytes / bytes);
}

// Extra wavefronts of one phase: `words` are 4-byte words; equal words are served together.
[[nodiscard]] std::int64_t phase_conflicts(const std::int64_t* words, std::uint32_t count);

}  // namespace kiln::sim
