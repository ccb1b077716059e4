// Tables of tuned kernels: what is read, what is refused and where, and which entry wins.
#include "gemm/tuned.h"

#include <gtest/gtest.h>

#include "gemm/kernel_files.h"
#include "gemm/kernel_row.h"

namespace kiln::gemm {
namespace {

std::string table_with(const std::string& entries) {
  return R"({"format": 1, "arch": "sm_90a", "entries": [)" + entries + "]}";
}

constexpr const char* kEntries = R"(
  {"types": ["bf16","bf16","bf16"], "kernel": "any"},
  {"types": ["bf16","bf16","bf16"], "m": [1, 128], "kernel": "few_rows"},
  {"types": ["bf16","bf16","bf16"], "m": [65, 128], "kernel": "fewer_rows"},
  {"types": ["bf16","bf16","bf16"], "m": [1, 1000000], "n": 512, "k": 256, "kernel": "exact"},
  {"types": ["bf16","bf16","bf16"], "a_along_k": false, "kernel": "turned",
   "defines": {"TILE_N": 64, "DTYPE": "half"}, "seconds": 0.5})";

std::string best(const Problem& problem) {
  const auto table = parse_table(table_with(kEntries), "test");
  EXPECT_TRUE(table) << table.error().text();
  const auto found = fitting(*table, problem);
  return found.empty() ? "" : found.front()->choice.kernel;
}

std::string mistake(const std::string& text) {
  const auto table = parse_table(text, "test.json");
  if (table) return "none";
  EXPECT_EQ(table.error().subject, "test.json");
  return table.error().reason;
}

TEST(TunedTest, TheNarrowestEntryWins) {
  EXPECT_EQ(best({.m = 4096, .n = 4096, .k = 4096}), "any");
  EXPECT_EQ(best({.m = 64, .n = 4096, .k = 4096}), "few_rows");
  EXPECT_EQ(best({.m = 65, .n = 4096, .k = 4096}), "fewer_rows");
  EXPECT_EQ(best({.m = 65, .n = 512, .k = 256}), "exact");
  Problem turned{.m = 65, .n = 512, .k = 256};
  turned.a_along_k = false;
  EXPECT_EQ(best(turned), "turned");
  turned.b_along_k = false;
  EXPECT_EQ(best(turned), "");
}

TEST(TunedTest, TheEntryMeasuredAtTheProblemWins) {
  const auto table = *parse_table(table_with(R"(
  {"types": ["bf16","bf16","bf16"], "m": [33, 64], "n": 512, "k": 256, "at": [64, 512, 256],
   "kernel": "near"},
  {"types": ["bf16","bf16","bf16"], "m": [1, 64], "n": [1, 512], "k": 256, "at": [48, 500, 256],
   "kernel": "own"})"),
                                  "test");
  const auto best = [&](const Problem& problem) {
    const auto found = fitting(table, problem);
    return found.empty() ? "" : found.front()->choice.kernel;
  };
  EXPECT_EQ(best({.m = 48, .n = 500, .k = 256}), "own");
  EXPECT_EQ(best({.m = 48, .n = 512, .k = 256}), "near");
  EXPECT_EQ(best({.m = 20, .n = 512, .k = 256}), "own");
  EXPECT_EQ(best({.m = 65, .n = 512, .k = 256}), "");
  EXPECT_TRUE(has_entry(table, {.m = 48, .n = 500, .k = 256}));
  EXPECT_FALSE(has_entry(table, {.m = 48, .n = 512, .k = 256}));
  EXPECT_EQ(parse_table(table_text(table), "again")->entries[1].at, (Extents{48, 500, 256}));
}

TEST(TunedTest, BatchInvariantProblemsIgnoreEntriesForSomeRows) {
  Problem problem{.m = 65, .n = 512, .k = 256, .batch_invariant = true};
  EXPECT_EQ(best(problem), "any");
  problem = {.m = 65, .n = 512, .k = 256, .groups = 2};
  EXPECT_EQ(best(problem), "");
  problem = {.m = 65, .n = 512, .k = 256, .batch = 2};
  EXPECT_EQ(best(problem), "");
}

TEST(TunedTest, TextReadsBack) {
  const auto table = parse_table(table_with(kEntries), "test");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->entries[4].choice.defines, (Defines{{"DTYPE", "half"}, {"TILE_N", "64"}}));
  EXPECT_EQ(table->entries[4].seconds, 0.5);
  const std::string text = table_text(*table);
  const auto again = parse_table(text, "again");
  ASSERT_TRUE(again) << again.error().text() << text;
  EXPECT_EQ(table_text(*again), text);
  EXPECT_EQ(again->entries.size(), 5U);
  EXPECT_EQ(again->entries[2].m, (Range{65, 128}));
}

TEST(TunedTest, MistakesAreNamedByEntry) {
  EXPECT_EQ(mistake("{"), "not JSON");
  EXPECT_EQ(mistake("[]"), "not a JSON object");
  EXPECT_EQ(mistake(R"({"format": 2, "arch": "sm_90a", "entries": []})"), "`format` must be 1");
  EXPECT_EQ(mistake(R"({"format": 1, "arch": "sm_1", "entries": []})"),
            "no architecture `sm_1`; there are " + target::arch_names());
  EXPECT_EQ(mistake(R"({"format": 1, "arch": "sm_90a"})"), "`entries` must be an array");
  EXPECT_EQ(mistake(R"({"format": 1, "arch": "sm_90a", "entries": [], "more": 1})"),
            "the table: no key `more`");
  const std::string types = R"("types": ["f16","f16","f16"])";
  const std::string good = "{" + types + R"(, "kernel": "x"})";
  EXPECT_EQ(mistake(table_with(good)), "none");
  EXPECT_EQ(mistake(table_with(good + ", 7")), "entry 1: not an object");
  EXPECT_EQ(mistake(table_with("{" + types + "}")), "entry 0: `kernel` must be a string");
  EXPECT_EQ(mistake(table_with(R"({"types": ["f16","f16"], "kernel": "x"})")),
            "entry 0: `types` must be those of A, B and C");
  EXPECT_EQ(mistake(table_with(R"({"types": ["f16","f16","q7"], "kernel": "x"})")),
            "entry 0: no element type \"q7\"");
  const auto with = [&](const std::string& more) {
    return mistake(table_with("{" + types + R"(, "kernel": "x", )" + more + "}"));
  };
  EXPECT_EQ(with(R"("m": "many")"), "entry 0: `m` must be a number or a pair of them");
  EXPECT_EQ(with(R"("n": [5, 4])"), "entry 0: `n` goes from 5 to 4");
  EXPECT_EQ(with(R"("k": 0)"), "entry 0: `k` goes from 0 to 0");
  EXPECT_EQ(with(R"("at": [1, 2])"), "entry 0: `at` must be m, n and k");
  EXPECT_EQ(with(R"("tile": 4)"), "entry 0: no key `tile`");
  EXPECT_EQ(with(R"("a_along_k": 1)"), "entry 0: `a_along_k` must be true or false");
  EXPECT_EQ(with(R"("defines": [1])"), "entry 0: `defines` must be an object");
  EXPECT_EQ(with(R"("defines": {"TILE_N": 1.5})"),
            "entry 0: `TILE_N` must be a string or a whole number");
  EXPECT_EQ(with(R"("seconds": "1")"), "entry 0: `seconds` must be a number");
}

TEST(TunedTest, MergingReplacesTheEntryForTheSameProblemsAndKeepsTheOthers) {
  auto table = *parse_table(table_with(kEntries), "test");
  TunedEntry entry = table.entries[1];
  entry.choice.kernel = "faster";
  merge(table, entry);
  ASSERT_EQ(table.entries.size(), 5U);
  EXPECT_EQ(table.entries[1].choice.kernel, "faster");
  EXPECT_EQ(table.entries[2].choice.kernel, "fewer_rows");
  entry.m = {1, 127};
  merge(table, entry);
  ASSERT_EQ(table.entries.size(), 6U);
  EXPECT_EQ(table.entries[5].m, (Range{1, 127}));
  // Measured at the same problem, for other ones around it.
  entry.at = Extents{100, 64, 32};
  merge(table, entry);
  entry.m = {65, 128};
  entry.choice.kernel = "fastest";
  merge(table, entry);
  ASSERT_EQ(table.entries.size(), 7U);
  EXPECT_EQ(table.entries[6].choice.kernel, "fastest");
  // An entry with the extents and types of the last, for another product, is one more.
  entry.choice.kernel = "gemm_block_scaled_sm90";
  merge(table, entry);
  EXPECT_EQ(table.entries.size(), 8U);
}

TEST(TunedTest, AnEntryIsForExactlyItsProblem) {
  const auto table =
      *parse_table(table_with(R"({"types": ["f8_e4m3","f8_e4m3","bf16"], "m": 16, "n": 32, "k": 64,
                     "kernel": "gemm_sm90"},
                    {"types": ["bf16","bf16","bf16"], "kernel": "gemm_sm90"})"),
                   "test");
  Problem problem{.m = 16, .n = 32, .k = 64, .a = DType::kE4M3, .b = DType::kE4M3};
  EXPECT_TRUE(has_entry(table, problem));
  problem.block_scales = true;
  EXPECT_FALSE(has_entry(table, problem));
  EXPECT_FALSE(has_entry(table, {.m = 16, .n = 32, .k = 64}));  // a box is no exact entry
}

TEST(TunedTest, ShippedTablesNameKernelsThatExist) {
  int tables = 0;
  for (const target::Arch& arch : target::all_archs()) {
    const KernelFile* file = kernel_file("tuned/" + std::string(arch.name) + ".json");
    if (file == nullptr) continue;
    ++tables;
    const auto table = parse_table(file->text, file->name);
    ASSERT_TRUE(table) << table.error().text();
    EXPECT_EQ(table->arch, arch.name);
    for (const TunedEntry& entry : table->entries) {
      EXPECT_NE(kernel_row(entry.choice.kernel), nullptr) << entry.choice.kernel;
      EXPECT_NE(kernel_file(entry.choice.kernel + ".co"), nullptr) << entry.choice.kernel;
    }
  }
  EXPECT_GE(tables, 1);
}

}  // namespace
}  // namespace kiln::gemm
