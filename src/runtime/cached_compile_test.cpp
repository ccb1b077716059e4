#include "runtime/cached_compile.h"

#include <map>
#include <set>

#include "runtime/cache_test_support.h"
#include "runtime/library.h"
#include "support/file.h"

namespace kiln::runtime {
namespace {

const target::Arch& sm_90a() { return *target::find_arch("sm_90a"); }

CompileRequest request(const std::string& body) {
  return compile_request(format("__global__ void k(int* p) {{ *p = {}; }}\n", body), sm_90a(),
                         "k.cu");
}

// Whatever NVRTC is given makes another key.
TEST(CompileKeyTest, EverythingMatters) {
  const emit::DeviceHeader headers[] = {{"a.h", "int a;"}, {"b.h", "int b;"}};
  const emit::DeviceHeader renamed[] = {{"a.h", "int a;"}, {"c.h", "int b;"}};
  const emit::DeviceHeader changed[] = {{"a.h", "int a;"}, {"b.h", "int c;"}};
  const CompileRequest base{
      .text = "t", .file_name = "f", .options = {"-x", "-y"}, .headers = headers};
  std::vector<CompileRequest> requests(7, base);
  requests[1].text = "u";
  requests[2].file_name = "g";
  requests[3].options = {"-x", "-z"};
  requests[4].headers = renamed;
  requests[5].headers = changed;
  requests[6].headers = std::span(headers).first(1);
  std::set<std::string> keys;
  for (const CompileRequest& each : requests) keys.insert(compile_key(each, "13.0 1").hex());
  keys.insert(compile_key(base, "13.0 2").hex());
  EXPECT_EQ(keys.size(), requests.size() + 1);
  EXPECT_EQ(compile_key(base, "13.0 1"), compile_key(CompileRequest(base), "13.0 1"));
}

TEST(CompileKeyTest, ArchitecturesDiffer) {
  std::set<std::string> keys;
  for (const target::Arch& arch : target::all_archs()) {
    keys.insert(compile_key(compile_request("t", arch, "f"), "13.0 1").hex());
  }
  EXPECT_EQ(keys.size(), target::all_archs().size());
}

TEST(SearchStateTest, ANewFileIsSeen) {
  std::string folder = testing::TempDir() + "/kiln-search-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::vector<std::string> names = {folder + "/lib.so*"};
  const std::string none = search_state(names);
  ASSERT_TRUE(write_file(folder + "/lib.so.1", "one"));
  const std::string one = search_state(names);
  ASSERT_TRUE(write_file(folder + "/lib.so.1", "longer"));
  const std::string longer = search_state(names);
  EXPECT_EQ((std::set{none, one, longer}.size()), 3U);
  EXPECT_EQ(search_state(names), longer);
  std::filesystem::remove_all(folder);
}

// What is compiled, found and refused; where there is an NVRTC.
class CachedCompileTest : public CacheTest {
 protected:
  void SetUp() override {
    CacheTest::SetUp();
    if (const auto found = find_nvrtc(); !found) {
      GTEST_SKIP() << "not tested: " << found.error().text();
    }
  }
  // The outcome, which must be right.
  [[nodiscard]] Compiled compiled(const std::string& body,
                                  CacheUse use = CacheUse::kFindAndStore) const {
    auto out = compile_cached(request(body), cache(), use);
    EXPECT_TRUE(out) << out.error().text();
    EXPECT_EQ(out->cubin.bytes, compile(request(body)).value().bytes);
    EXPECT_EQ(out->cubin.version, find_nvrtc().value().version);
    EXPECT_EQ(out->note, "");
    return std::move(*out);
  }
};

TEST_F(CachedCompileTest, TheSecondTimeItIsFound) {
  for (const bool cached : {false, true, true}) {
    const Compiled one = compiled("1");
    EXPECT_EQ(one.cached, cached);
    EXPECT_TRUE(one.kept);
  }
  EXPECT_FALSE(compiled("2").cached);
  EXPECT_TRUE(compiled("1").cached);
}

TEST_F(CachedCompileTest, ItIsCompiledAnewWhereAskedTo) {
  for (int i = 0; i < 2; ++i) {
    const Compiled one = compiled("1", CacheUse::kStoreOnly);
    EXPECT_FALSE(one.cached);
    EXPECT_TRUE(one.kept);
  }
  EXPECT_TRUE(compiled("1").cached);
}

// The entry that says which NVRTC there is, as a key. It is the smaller one of two.
Digest toolkit_key(const std::string& folder) {
  std::map<std::uintmax_t, std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names[entry.file_size()] = entry.path().stem().string();
  }
  EXPECT_EQ(names.size(), 2U);
  const std::string& hex = names.begin()->second;
  return {.high = std::stoull(hex.substr(0, 16), nullptr, 16),
          .low = std::stoull(hex.substr(16), nullptr, 16)};
}

TEST_F(CachedCompileTest, DamagedEntriesHeal) {
  EXPECT_FALSE(compiled("1").cached);
  const std::string toolkit = path_of(toolkit_key(folder()));
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    paths.push_back(entry.path().string());
  }
  for (const auto& damaged : {std::vector{paths[0]}, std::vector{paths[1]}, paths}) {
    for (const std::string& path : damaged) {
      std::string bytes = read_file(path).value();
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      ASSERT_TRUE(write_file(path, bytes));
    }
    EXPECT_EQ(compiled("1").cached, damaged == std::vector{toolkit});
    EXPECT_TRUE(compiled("1").cached);
  }
}

// The library's file is not what it was when its version was kept.
TEST_F(CachedCompileTest, AnotherNvrtcIsNoticed) {
  static_cast<void>(compiled("1"));
  const Digest key = toolkit_key(folder());
  const std::string kept = cache().find(key).value();
  const std::string path = kept.substr(kept.rfind('\n') + 1);
  EXPECT_EQ(path, find_nvrtc().value().path);
  ASSERT_TRUE(cache().store(key, "9.9\n5 0.000000000\n" + path));
  ASSERT_TRUE(cache().store(compile_key(request("1"), "9.9 5"), "another's kernel"));
  EXPECT_TRUE(compiled("1").cached);
  EXPECT_EQ(cache().find(key), kept);
  for (const char* strange : {"", "9.9", "9.9\n", "9.9\n\n", "9.9\n\nnowhere"}) {
    ASSERT_TRUE(cache().store(key, strange));
    EXPECT_TRUE(compiled("1").cached) << strange;
  }
}

TEST_F(CachedCompileTest, WithoutACacheItIsCompiled) {
  for (int i = 0; i < 2; ++i) {
    const auto out = compile_cached(request("1"), Cache({.folder = ""}), CacheUse::kFindAndStore);
    ASSERT_TRUE(out) << out.error().text();
    EXPECT_FALSE(out->cached);
    EXPECT_FALSE(out->kept);
    EXPECT_EQ(out->note, "");
  }
}

TEST_F(CachedCompileTest, AFolderThatCannotBeMadeIsANote) {
  ASSERT_TRUE(write_file(root_ + "/a", "no folder"));
  const auto out = compile_cached(request("1"), cache(), CacheUse::kFindAndStore);
  ASSERT_TRUE(out) << out.error().text();
  EXPECT_FALSE(out->kept);
  EXPECT_NE(out->note.find(folder()), std::string::npos) << out->note;
}

TEST_F(CachedCompileTest, WhatDoesNotCompileIsNotKept) {
  for (int i = 0; i < 2; ++i) {
    const auto out = compile_cached(request("nothing"), cache(), CacheUse::kFindAndStore);
    ASSERT_FALSE(out);
    EXPECT_NE(out.error().reason.find("\"nothing\" is undefined"), std::string::npos);
  }
  EXPECT_LE(cache().usage().value().entries, 1);
}

}  // namespace
}  // namespace kiln::runtime
