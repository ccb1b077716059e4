#include <nlohmann/json.hpp>

#include "explain/draw/print.h"
#include "support/json.h"

namespace kiln::explain {

namespace {

using Json = nlohmann::ordered_json;

Json value_of(const Property& property) {
  if (const auto* number = std::get_if<Index>(&property.value)) return *number;
  return *std::get_if<std::string>(&property.value);
}

Json object_of(const std::vector<Property>& properties) {
  Json out = Json::object();
  for (const Property& property : properties) out[std::string(property.name)] = value_of(property);
  return out;
}

Json grid_json(const Grid& grid) {
  Json out = object_of(grid.properties);
  Json elements = Json::array();
  for (int row = 0; row < row_count(grid); ++row) {
    Json line = Json::array();
    for (int col = 0; col < col_count(grid); ++col) {
      Json cell = Json::object();
      for (const Fact& fact : cell_at(grid, row, col).facts) {
        cell[std::string(fact.name)] = fact.value;
      }
      line.push_back(std::move(cell));
    }
    elements.push_back(std::move(line));
  }
  out["elements"] = std::move(elements);
  return out;
}

}  // namespace

std::string to_json(const Picture& picture) {
  if (picture.list_name.empty()) return json_text(grid_json(picture.grids.front()), 2) + "\n";
  Json out = object_of(picture.properties);
  Json grids = Json::array();
  for (const Grid& grid : picture.grids) grids.push_back(grid_json(grid));
  out[std::string(picture.list_name)] = std::move(grids);
  return json_text(out, 2) + "\n";
}

}  // namespace kiln::explain
