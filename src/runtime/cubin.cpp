#include "runtime/cubin.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace kiln::runtime {

namespace {

// Of ELF's 64-bit file header, section headers and symbols: where their fields lie.
constexpr std::string_view kMagic =
    "\x7f"
    "ELF\x02\x01";
constexpr std::size_t kSectionsAt = 0x28;
constexpr std::size_t kSectionBytesAt = 0x3a;
constexpr std::size_t kSectionCountAt = 0x3c;
constexpr std::size_t kNamesSectionAt = 0x3e;
constexpr std::size_t kSectionLinkAt = 0x28;
constexpr std::size_t kSectionOffsetAt = 0x18;
constexpr std::size_t kSectionSizeAt = 0x20;
constexpr std::size_t kSectionTypeAt = 0x04;
constexpr std::uint32_t kSymbolTable = 2;
constexpr std::size_t kSymbolBytes = 24;

// Records of `.nv.info`: a format, an attribute, and a number of 16 bits, which in one format is that of the bytes that follow.
constexpr std::uint8_t kSized = 4;
constexpr std::uint8_t kRegisterCount = 0x2f;
constexpr std::size_t kRecordBytes = 4;

struct Section {
  std::string_view name;
  std::string_view bytes;
  std::uint32_t type = 0;
  std::uint32_t link = 0;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::optional<std::map<std::string, int>> read() {
    if (!bytes_.starts_with(kMagic) || !read_sections()) return std::nullopt;
    const Section* info = find([](const Section& s) { return s.name == ".nv.info"; });
    const Section* symbols = find([](const Section& s) { return s.type == kSymbolTable; });
    std::map<std::string, int> out;
    if (info == nullptr) return out;
    if (symbols == nullptr || symbols->link >= sections_.size()) return std::nullopt;
    std::string_view rest = info->bytes;
    while (rest.size() >= kRecordBytes) {
      const auto format = static_cast<std::uint8_t>(rest[0]);
      const auto attribute = static_cast<std::uint8_t>(rest[1]);
      const std::size_t size = format == kSized ? number<std::uint16_t>(rest, 2).value_or(0) : 0;
      if (rest.size() < kRecordBytes + size) return std::nullopt;
      const std::string_view record = rest.substr(kRecordBytes, size);
      rest.remove_prefix(kRecordBytes + size);
      if (attribute != kRegisterCount) continue;
      const auto symbol = number<std::uint32_t>(record, 0);
      const auto count = number<std::uint32_t>(record, sizeof(std::uint32_t));
      if (!symbol || !count) return std::nullopt;
      const auto name = name_of(*symbols, *symbol);
      if (!name) return std::nullopt;
      out[std::string(*name)] = static_cast<int>(*count);
    }
    return out;
  }

 private:
  template <class T>
  static std::optional<T> number(std::string_view bytes, std::size_t at) {
    if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
    T out{};
    std::memcpy(&out, bytes.data() + at, sizeof(T));
    return out;
  }

  static std::optional<std::string_view> text(std::string_view strings, std::size_t at) {
    if (at >= strings.size()) return std::nullopt;
    return strings.substr(at, strings.find('\0', at) - at);
  }

  // A section without its name, whose place among the names is added to `names`.
  std::optional<Section> section(std::string_view header, std::vector<std::uint32_t>& names) {
    const auto name = number<std::uint32_t>(header, 0);
    const auto type = number<std::uint32_t>(header, kSectionTypeAt);
    const auto offset = number<std::uint64_t>(header, kSectionOffsetAt);
    const auto size = number<std::uint64_t>(header, kSectionSizeAt);
    const auto link = number<std::uint32_t>(header, kSectionLinkAt);
    if (!name || !type || !offset || !size || !link) return std::nullopt;
    names.push_back(*name);
    constexpr std::uint32_t kNoBits = 8;
    Section out{.name = {}, .bytes = {}, .type = *type, .link = *link};
    if (*type == kNoBits) return out;
    if (*offset > bytes_.size() || *size > bytes_.size() - *offset) return std::nullopt;
    out.bytes = bytes_.substr(*offset, *size);
    return out;
  }

  bool read_sections() {
    const auto at = number<std::uint64_t>(bytes_, kSectionsAt);
    const auto bytes = number<std::uint16_t>(bytes_, kSectionBytesAt);
    const auto count = number<std::uint16_t>(bytes_, kSectionCountAt);
    const auto names_at = number<std::uint16_t>(bytes_, kNamesSectionAt);
    if (!at || !bytes || !count || !names_at || *at > bytes_.size()) return false;
    std::vector<std::uint32_t> names;
    for (std::size_t i = 0; i < *count; ++i) {
      const std::size_t begin = *at + i * *bytes;
      if (begin > bytes_.size() || bytes_.size() - begin < *bytes) return false;
      const auto found = section(bytes_.substr(begin, *bytes), names);
      if (!found) return false;
      sections_.push_back(*found);
    }
    if (*names_at >= sections_.size()) return false;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const auto name = text(sections_[*names_at].bytes, names[i]);
      if (!name) return false;
      sections_[i].name = *name;
    }
    return true;
  }

  template <class Wanted>
  [[nodiscard]] const Section* find(Wanted&& wanted) const {
    for (const Section& each : sections_) {
      if (wanted(each)) return &each;
    }
    return nullptr;
  }

  [[nodiscard]] std::optional<std::string_view> name_of(const Section& symbols,
                                                        std::uint32_t symbol) const {
    const auto at = number<std::uint32_t>(symbols.bytes, symbol * kSymbolBytes);
    return at ? text(sections_[symbols.link].bytes, *at) : std::nullopt;
  }

  std::string_view bytes_;
  std::vector<Section> sections_;
};

}  // namespace

Result<std::map<std::string, int>> registers_of(std::string_view cubin) {
  auto out = Reader(cubin).read();
  if (!out)
    return Unexpected{
        Error{"cannot read the registers of what was compiled", {}, "it is no whole ELF file"}};
  return std::move(*out);
}

}  // namespace kiln::runtime
