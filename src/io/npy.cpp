#include "io/npy.h"

#include <cstring>

#include "support/file.h"

namespace kiln::io {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kHeaderMax = std::size_t{1} << 20;
constexpr std::size_t kRankMax = 8;

struct NpyType {
  std::string_view code;  // after the byte-order mark
  DType dtype;
};
constexpr NpyType kNpyTypes[] = {
    {"f2", DType::kF16}, {"f4", DType::kF32}, {"f8", DType::kF64}, {"i1", DType::kS8},
    {"i2", DType::kS16}, {"i4", DType::kS32}, {"i8", DType::kS64}, {"u1", DType::kU8},
    {"u2", DType::kU16}, {"u4", DType::kU32}, {"u8", DType::kU64}, {"b1", DType::kBool},
    {"V2", DType::kU16}, {"V1", DType::kU8},
};

std::string descr_of(DType dtype) {
  if (dtype == DType::kBF16) return "<V2";
  if (dtype == DType::kTF32) return "<f4";
  for (const NpyType& type : kNpyTypes) {
    if (type.dtype == dtype) return (size_bytes(dtype) == 1 ? "|" : "<") + std::string(type.code);
  }
  // Sub-byte types are stored one to a byte, so plain bytes say what is there.
  return is_float(dtype) ? "|V1" : info(dtype).kind == NumberKind::kSigned ? "|i1" : "|u1";
}

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<std::int64_t> shape;
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
};

// Reads the header's Python dictionary: strings, True/False and a tuple of integers only.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  // The reason why it cannot be read; empty when it can.
  std::string read(Header& header) {
    if (!accept('{')) return "its header is not a dictionary";
    while (!accept('}')) {
      std::string key;
      if (!string(key) || !accept(':')) return "its header is not a dictionary of strings";
      if (std::string reason = value(key, header); !reason.empty()) return reason;
      if (!accept(',') && !peek('}')) return "its header is cut off or damaged";
    }
    if (!header.has_descr || !header.has_order || !header.has_shape) {
      return "its header lacks one of `descr`, `fortran_order`, `shape`";
    }
    return "";
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool peek(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) {
    if (!peek(c)) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view expected) {
    skip_space();
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  bool string(std::string& out) {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    out = std::string(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return true;
  }
  bool integer(std::int64_t& out) {
    skip_space();
    const std::size_t begin = at_;
    out = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(out, 10, &out) ||
          __builtin_add_overflow(out, text_[at_] - '0', &out)) {
        return false;
      }
      ++at_;
    }
    return at_ > begin;
  }
  std::string value(const std::string& key, Header& header) {
    if (key == "descr") {
      header.has_descr = string(header.descr);
      return header.has_descr ? "" : "its elements are records";
    }
    if (key == "fortran_order") {
      header.fortran = word("True");
      header.has_order = header.fortran || word("False");
      return header.has_order ? "" : "its `fortran_order` is neither True nor False";
    }
    if (key == "shape") return shape(header);
    return format("its header has an unknown key `{}`", key);
  }
  std::string shape(Header& header) {
    if (!accept('(')) return "its `shape` is not a tuple";
    while (!accept(')')) {
      std::int64_t extent = 0;
      if (!integer(extent)) return "its `shape` holds something that is not a small integer";
      header.shape.push_back(extent);
      if (header.shape.size() > kRankMax) return format("it has more than {} dimensions", kRankMax);
      if (!accept(',') && !peek(')')) return "its `shape` is cut off or damaged";
    }
    header.has_shape = true;
    return "";
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Little-endian integer of `count` bytes.
std::size_t integer_at(std::string_view bytes, std::size_t at, std::size_t count) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < count; ++i) {
    out |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return out;
}

// Splits the file into its header's text and its data; else the reason.
std::string split(std::string_view bytes, std::string_view& header, std::string_view& data) {
  if (bytes.size() < 10) return "it is too short";
  if (bytes.substr(0, kMagic.size()) != kMagic) return "it does not begin with \\x93NUMPY";
  const int version = bytes[6];
  if (version < 1 || version > 3) return format("its format version is {}, not 1 to 3", version);
  const std::size_t count = version == 1 ? 2 : 4;
  if (bytes.size() < 8 + count) return "its header is cut off";
  const std::size_t length = integer_at(bytes, 8, count);
  const std::size_t begin = 8 + count;
  if (length > kHeaderMax) return format("its header claims {} bytes", length);
  if (bytes.size() - begin < length) return "its header is cut off";
  header = bytes.substr(begin, length);
  data = bytes.substr(begin + length);
  return "";
}

// From column-major to row-major.
std::vector<std::byte> transposed(const Tensor& tensor) {
  const auto size = static_cast<std::size_t>(size_bytes(tensor.dtype));
  const auto rank = tensor.shape.size();
  std::vector<std::byte> out(tensor.bytes.size());
  std::vector<std::int64_t> index(rank);
  for (std::size_t i = 0; i * size < out.size(); ++i) {
    std::int64_t from = 0;
    for (std::size_t d = rank; d-- > 0;) from = from * tensor.shape[d] + index[d];
    std::memcpy(&out[i * size], &tensor.bytes[static_cast<std::size_t>(from) * size], size);
    for (std::size_t d = rank; d-- > 0 && ++index[d] == tensor.shape[d];) index[d] = 0;
  }
  return out;
}

// Sets the array's type; else the reason.
std::string set_type(const std::string& descr, NpyArray& array) {
  array.descr = descr;
  const bool marked = descr.find_first_of("<>|=") == 0;
  const std::string_view code = std::string_view(descr).substr(marked ? 1 : 0);
  for (const NpyType& type : kNpyTypes) {
    if (type.code != code) continue;
    array.tensor.dtype = type.dtype;
    array.is_void = code.front() == 'V';
    array.opaque = array.is_void || type.dtype == DType::kU16 || type.dtype == DType::kU8;
    if (marked && descr.front() == '>' && size_bytes(type.dtype) > 1) {
      return format("its elements `{}` are big endian", descr);
    }
    return "";
  }
  return format("its element type `{}` is none that kiln has", descr);
}

}  // namespace

Result<NpyArray> parse_npy(std::string_view bytes, const std::string& path) {
  const auto bad = [&](std::string reason) {
    return Unexpected{Error{"not a usable .npy file", path, std::move(reason)}};
  };
  std::string_view text;
  std::string_view data;
  if (std::string reason = split(bytes, text, data); !reason.empty()) return bad(reason);
  Header header;
  if (std::string reason = HeaderReader(text).read(header); !reason.empty()) return bad(reason);
  NpyArray array;
  if (std::string reason = set_type(header.descr, array); !reason.empty()) return bad(reason);
  Tensor& tensor = array.tensor;
  if (!elements_fit(tensor.dtype, header.shape)) {
    return bad(format("its shape {} is too large", shape_text(header.shape)));
  }
  tensor.shape = header.shape;
  const auto expected = static_cast<std::size_t>(tensor.elements()) *
                        static_cast<std::size_t>(size_bytes(tensor.dtype));
  if (data.size() != expected) {
    return bad(format("its shape {} of `{}` needs {} bytes of data, it has {}",
                      shape_text(tensor.shape), array.descr, expected, data.size()));
  }
  tensor.bytes.resize(expected);
  if (expected != 0) std::memcpy(tensor.bytes.data(), data.data(), expected);
  if (header.fortran) tensor.bytes = transposed(tensor);
  return array;
}

Result<NpyArray> read_npy(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return Unexpected{bytes.error()};
  return parse_npy(*bytes, path);
}

std::optional<Tensor> as_dtype(NpyArray array, DType dtype) {
  const DType stored = array.tensor.dtype;
  const bool same = stored == dtype && !array.is_void;
  const bool bits = array.opaque && (is_float(dtype) || is_sub_byte(dtype) || stored == dtype) &&
                    size_bytes(dtype) == size_bytes(stored) && dtype != DType::kF16;
  const bool tf32 = stored == DType::kF32 && dtype == DType::kTF32;
  const bool narrow =
      stored == DType::kS8 && is_sub_byte(dtype) && info(dtype).kind == NumberKind::kSigned;
  if (!same && !bits && !tf32 && !narrow) return std::nullopt;
  array.tensor.dtype = dtype;
  return std::move(array.tensor);
}

std::string npy_bytes(const Tensor& tensor) {
  std::string shape = join(tensor.shape, ", ", [](std::int64_t e) { return format("{}", e); });
  if (tensor.shape.size() == 1) shape += ",";
  std::string header = format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                              descr_of(tensor.dtype), shape);
  // Magic, version and length take 10 bytes; the data begins at a multiple of 64.
  const std::size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return out;
}

Result<void> write_npy(const std::string& path, const Tensor& tensor) {
  return write_file(path, npy_bytes(tensor));
}

}  // namespace kiln::io
