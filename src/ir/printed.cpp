#include "ir/printed.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

namespace kiln::ir {

namespace {

std::string written(const char* conversion, auto value) {
  char text[64] = {};
  std::snprintf(text, sizeof text, conversion, value);
  return text;
}

auto thread_of(const Printed& one) { return std::tuple(one.phase, one.block, one.thread); }

}  // namespace

std::size_t places_in(std::string_view text) {
  std::size_t places = 0;
  (void)fill_in(text, "%", [&](std::size_t) {
    ++places;
    return std::string();
  });
  return places;
}

std::string fill_in(std::string_view text, std::string_view percent,
                    const std::function<std::string(std::size_t)>& value) {
  std::string out;
  std::size_t place = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
    } else if (text.substr(i + 1).starts_with('_')) {
      out += value(place++);
      ++i;
    } else {
      out += percent;
      if (text.substr(i + 1).starts_with('%')) ++i;
    }
  }
  return out;
}

std::string_view conversion(DType dtype) {
  const DTypeInfo& type = info(dtype);
  const bool wide = type.bits > 32;
  switch (type.kind) {
    case NumberKind::kFloat: return "%g";
    case NumberKind::kSigned: return wide ? "%lld" : "%d";
    case NumberKind::kUnsigned: return wide ? "%llu" : "%u";
    case NumberKind::kBool: return "%s";
  }
  return "";
}

std::string printed(DType dtype, std::int64_t integer, double number) {
  const DTypeInfo& type = info(dtype);
  switch (type.kind) {
    case NumberKind::kFloat: return written("%g", number);
    case NumberKind::kSigned: return written("%lld", static_cast<long long>(integer));
    case NumberKind::kUnsigned: return written("%llu", static_cast<unsigned long long>(integer));
    case NumberKind::kBool: return integer != 0 ? "true" : "false";
  }
  return "";
}

std::vector<Printed> lines_in_order(std::vector<Printed> printed) {
  std::ranges::stable_sort(printed, {}, thread_of);
  std::vector<Printed> out;
  bool open = false;  // the last line has not ended
  for (Printed& one : printed) {
    if (open && thread_of(out.back()) == thread_of(one)) {
      out.back().text += one.text;
    } else {
      out.push_back(std::move(one));
    }
    open = !out.back().text.ends_with('\n');
    if (!open) out.back().text.pop_back();
  }
  return out;
}

}  // namespace kiln::ir
