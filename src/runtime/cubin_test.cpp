#include "runtime/cubin.h"

#include <gtest/gtest.h>

#include "emit/cuda/samples_for_test.h"
#include "runtime/run.h"

namespace kiln::runtime {
namespace {

void put(std::string& to, std::size_t at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to[at + i] = static_cast<char>(value >> (8 * i));
}

// A file with two kernels: sections of names, symbols and records, and their headers.
std::string two_kernels() {
  const std::string names("\0.names\0.symtab\0.nv.info\0one\0two\0", 34);
  std::string symbols(3 * 24, '\0');
  put(symbols, 24, 25, 4);
  put(symbols, 48, 29, 4);
  const auto record = [](std::uint8_t attribute, std::uint32_t symbol, std::uint32_t value) {
    std::string out(12, '\0');
    put(out, 0, 4, 1);
    put(out, 1, attribute, 1);
    put(out, 2, 8, 2);
    put(out, 4, symbol, 4);
    put(out, 8, value, 4);
    return out;
  };
  const std::string plain("\x02\x01\x05\x00", 4);  // a record without bytes of its own
  const std::string info = record(0x2f, 2, 168) + plain + record(0x11, 2, 64) + record(0x2f, 1, 32);
  std::string out(64, '\0');
  out.replace(0, 6,
              "\x7f"
              "ELF\x02\x01");
  std::string headers(64, '\0');
  const auto add = [&](std::uint32_t name, std::uint32_t type, std::uint32_t link,
                       const std::string& bytes) {
    std::string header(64, '\0');
    put(header, 0, name, 4);
    put(header, 4, type, 4);
    put(header, 0x18, out.size(), 8);
    put(header, 0x20, bytes.size(), 8);
    put(header, 0x28, link, 4);
    headers += header;
    out += bytes;
  };
  add(1, 3, 0, names);
  add(8, 2, 1, symbols);
  add(16, 0x70000000, 0, info);
  put(out, 0x28, out.size(), 8);
  put(out, 0x3a, 64, 2);
  put(out, 0x3c, 4, 2);
  put(out, 0x3e, 1, 2);
  return out + headers;
}

TEST(RegistersOf, TellsThoseOfEachKernel) {
  const auto found = registers_of(two_kernels());
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (std::map<std::string, int>{{"one", 32}, {"two", 168}}));
}

TEST(RegistersOf, AFileThatIsCutOffIsRefused) {
  const std::string whole = two_kernels();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(registers_of(std::string_view(whole).substr(0, bytes))) << bytes;
  }
}

TEST(RegistersOf, NoByteMakesItReadOutside) {
  const std::string whole = two_kernels();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string other = whole;
      other[at] = value;
      (void)registers_of(other);
    }
  }
}

TEST(RegistersOf, KernelsThatNvrtcCompiles) {
  if (const auto nvrtc = find_nvrtc(); !nvrtc) GTEST_SKIP() << nvrtc.error().text();
  Sources sources;
  const target::Arch& arch = *target::find_arch("sm_90a");
  const auto module = emit::load_sample(KILN_EMIT_TESTDATA "/one_warp.kir", arch, sources);
  const auto cubin = compile_to_cubin_only(module, sources);
  ASSERT_TRUE(cubin) << cubin.error().text();
  const auto found = registers_of(cubin->bytes);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1U);
  EXPECT_GE(found->begin()->second, 16);
  EXPECT_LE(found->begin()->second, 255);
}

}  // namespace
}  // namespace kiln::runtime
