#include "target/miscompiled.h"

#include <cstdint>
#include <cstring>

namespace kiln::target {

namespace {

// ELF-64 (System V ABI, "Object Files"), little-endian.
constexpr std::size_t kHeaderBytes = 0x40;
constexpr std::size_t kFlags = 0x30;
constexpr std::size_t kSections = 0x28;
constexpr std::size_t kSectionBytes = 0x3a;
constexpr std::size_t kSectionCount = 0x3c;
constexpr std::size_t kSectionHeaderBytes = 0x40;
constexpr std::uint64_t kExecutable = 4;

template <class T>
T read(std::string_view bytes, std::size_t at) {
  T out = 0;
  std::memcpy(&out, bytes.data() + at, sizeof(T));
  return out;
}

// The architecture is in the lowest byte of the flags, or in the one above it in files of newer
// ABIs.
bool is_hopper(std::string_view cubin) {
  const auto flags = read<std::uint32_t>(cubin, kFlags);
  return (flags & 0xffU) == 90 || (flags >> 8 & 0xffU) == 90;
}

// An instruction has 16 bytes. VIMNMX has 0x48 in the low nine bits (register, constant or
// immediate operand above them); in its upper half bit 12 says RELU, bits 17 to 19 and 20 to 22
// name the predicates that it sets, 7 for none.
bool sets_one_predicate_twice(std::uint64_t low, std::uint64_t high) {
  const std::uint64_t first = high >> 17 & 7;
  const std::uint64_t second = high >> 20 & 7;
  const bool clamps = (low & 0x1ff) == 0x48 && (high >> 12 & 1) != 0;
  return clamps && first == second && first != 7;
}

bool has_bad_clamp(std::string_view code) {
  for (std::size_t at = 0; at + 16 <= code.size(); at += 16) {
    if (sets_one_predicate_twice(read<std::uint64_t>(code, at),
                                 read<std::uint64_t>(code, at + 8))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string_view known_miscompilation(std::string_view cubin) {
  if (cubin.size() < kHeaderBytes ||
      !cubin.starts_with("\x7f"
                         "ELF") ||
      !is_hopper(cubin))
    return {};
  const auto sections = read<std::uint64_t>(cubin, kSections);
  const std::size_t size = read<std::uint16_t>(cubin, kSectionBytes);
  const std::size_t count = read<std::uint16_t>(cubin, kSectionCount);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t at = sections + i * size;
    if (size < kSectionHeaderBytes || at > cubin.size() - kSectionHeaderBytes) break;
    const auto offset = read<std::uint64_t>(cubin, at + 0x18);
    const auto bytes = read<std::uint64_t>(cubin, at + 0x20);
    const bool inside = offset <= cubin.size() && bytes <= cubin.size() - offset;
    const bool code = (read<std::uint64_t>(cubin, at + 0x08) & kExecutable) != 0;
    if (code && inside && has_bad_clamp(cubin.substr(offset, bytes))) {
      return "of a clamp max(min(x, c), 0) and a test for its upper end, `== c` or `!= c`, ptxas "
             "before "
             "CUDA 13.5 makes an instruction that sets one predicate twice: test with `>= c` or `< "
             "c`, "
             "or use CUDA 13.5";
    }
  }
  return {};
}

}  // namespace kiln::target
