// One run of the fuzzer: the kept programs first, then mutants, then what they found.
//
//   Campaign campaign(options, seeds, corpus);
//   const bool fine = campaign.run();     // prints as it goes
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "crew.h"

namespace kiln::fuzz {

struct CampaignOptions {
  std::uint64_t seed = 1;
  std::uint64_t first = 0;  // mutant
  std::uint64_t count = 10'000;
  double minutes = 0;        // 0: no limit; else it ends then, whatever the count
  std::size_t again_in = 8;  // of so many mutants that `check` refuses one is tried twice
  bool minimise = true;
  std::filesystem::path keep = {};     // where what was found is written; empty: nowhere
  std::filesystem::path summary = {};  // a JSON file of counts; empty: none
  CrewOptions crew;
};

class Campaign {
 public:
  Campaign(CampaignOptions options, std::span<const Program> seeds, std::vector<Program> corpus)
      : options_(std::move(options)), seeds_(seeds), corpus_(std::move(corpus)) {}

  // True when nothing was found.
  bool run();

 private:
  struct Candidate {
    std::uint64_t index = 0;
    std::uint64_t draw = 0;
    std::size_t bytes = 0;
    std::string kept = {};  // a program of the corpus; else a mutant
    bool again = false;     // two runs differed: the failure is not one of a run alone
  };
  struct Found {
    std::uint64_t count = 0;
    std::vector<Candidate> candidates;  // the smallest few
    bool confirmed = false;
    std::string program = {};  // the smallest, serialised
    std::string how = {};
  };

  void replay();
  void mutate();
  void take(const Ending& ending);
  void compare(const Ending& ending);
  void note(const std::string& failure, Candidate candidate);
  void confirm_all();
  void confirm(const std::string& failure, Found& found, Crew& crew);
  void tell_all() const;
  void write_summary() const;
  [[nodiscard]] Program program_of(const Candidate& candidate) const;

  CampaignOptions options_;
  std::span<const Program> seeds_;
  std::vector<Program> corpus_;
  std::map<std::string, Found> found_;      // by failure
  std::map<std::string, Found> resources_;  // by failure, of programs that ask for too much
  std::uint64_t tried_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t ran_ = 0;
  std::uint64_t again_ = 0;
  double seconds_ = 0;
};

}  // namespace kiln::fuzz
