// Which of many candidates is the fastest: all are checked, then measured in rounds, each longer
// than the one before and with fewer of them.
//
//   24 candidates, one of them wrong       checked
//   23   3 batches of 20 ms each            the best 12 go on
//   12   5 batches of 20 ms                the best 4 go on
//    4   9 batches of 40 ms                the first of these has won
//
// What is measured, and on what, is behind TuneField; tests have one that needs no GPU.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "diag/diagnostics.h"
#include "reference/compare.h"

namespace kiln::measure {

struct Verdict {
  enum class Kind : std::uint8_t {
    kRight,
    kRefused,  // it cannot be compiled or launched
    kWrong,    // its result is not the product
  };
  Kind kind = Kind::kRight;
  std::string reason = {};    // of the others
  std::int64_t outside = 0;   // elements of a wrong result
  std::int64_t elements = 0;  // of those that were looked at
};

struct TuneRound {
  int repeats = 0;
  double batch_seconds = 0;
  std::size_t keep = 0;  // how many go on, the best ones
};

// The candidates of one problem, by index, ready to run.
class TuneField {
 public:
  TuneField() = default;
  TuneField(const TuneField&) = delete;
  TuneField& operator=(const TuneField&) = delete;
  virtual ~TuneField() = default;

  [[nodiscard]] virtual std::size_t count() const = 0;
  // Whether the first candidate is what there is now, which the others are compared with.
  [[nodiscard]] virtual bool has_default() const { return true; }
  // Runs one candidate and looks at its result. Errors: what the driver says.
  [[nodiscard]] virtual Result<Verdict> check(std::size_t candidate) = 0;
  // Seconds of one launch: [i][repeat] of candidate which[i], all in turn. Errors: what the driver
  // says.
  [[nodiscard]] virtual Result<std::vector<std::vector<double>>> measure(
      std::span<const std::size_t> which, const TuneRound& round) = 0;
};

// The verdict on a wrong result: its first element outside, and what that was held against.
[[nodiscard]] Verdict wrong(const reference::Comparison& found, std::string_view by);

[[nodiscard]] std::string_view name(Verdict::Kind kind);  // "right", "refused", "wrong"

// What has been measured of one candidate.
struct TuneScore {
  Verdict verdict = {};
  int rounds = 0;      // that it was measured in
  double seconds = 0;  // median of the last of them
};

struct TuneOutcome {
  std::vector<TuneScore> scores;   // by candidate
  std::vector<std::size_t> order;  // of those that were measured, the best first
};

// The default goes on whatever its time. `progress` is told what is being done. Errors: the
// field's.
[[nodiscard]] Result<TuneOutcome> play_rounds(
    TuneField& field, std::span<const TuneRound> rounds,
    const std::function<void(const std::string&)>& progress);

// Reports a wrong verdict on the candidate `which`, by its output's name.
void report_wrong(const Verdict& verdict, const std::string& output, std::string_view which,
                  Diagnostics& diags);

}  // namespace kiln::measure
