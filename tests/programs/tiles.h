// Statements of register tiles, drawn one after the other: what the tile programs share.
#pragma once

#include <optional>

#include "programs/expr.h"

namespace kiln::programs {

struct TileShape {
  int rows = 1;
  int cols = 1;
  bool operator==(const TileShape&) const = default;
};

// A register tile, or an expression that stands for one, and what is known of its elements.
struct TileValue {
  Value value;
  TileShape shape;
  bool named = true;      // by a name that may be assigned
  bool anchored = false;  // its first definition fixed type and shape: it may be assigned again
  bool typed = false;     // its definition says the type, which else may be another integer's
};

// Where a unit's tiles lie in the tensors: tile (row, col) of so many.
struct Window {
  TileShape tile;              // of one unit
  int units = 1;               // which stand below each other in a block
  std::string block_row = {};  // indices, as the program spells them
  std::string unit = {};       // empty for one unit that is the block
  std::string col = {};
  Extent m = {}, n = {};  // of what has all rows, all columns
  Extent row_tiles = {}, col_tiles = {};

  // [m, n] for a whole tile; a reduced dimension has one element for each tile.
  [[nodiscard]] std::vector<Extent> extents(TileShape shape) const;
  // The unit's part of a tensor with these extents.
  [[nodiscard]] std::string part(const std::string& tensor, TileShape shape) const;
  // The block's part, and where the unit's part is in it.
  [[nodiscard]] std::string block_part(const std::string& tensor, TileShape shape) const;
  [[nodiscard]] std::string unit_part(const std::string& buffer, TileShape shape) const;
  [[nodiscard]] TileShape block_shape(TileShape shape) const;
};

class Tiles {
 public:
  Tiles(Gen& gen, Node& block, Window window)
      : gen_(gen), block_(block), window_(std::move(window)) {}

  // From global memory, or through shared memory.
  void load(Node& at, DType type, TileShape shape);
  // One statement of any kind that makes or changes a tile.
  void statement(Node& at);
  // A loop over so many tiles of a row that carries tiles; `inner.col` is its variable.
  void loop(Node& at, const Window& inner, int count);
  // A tensor that the tile, or an expression of tiles, goes to.
  void store(Node& at);
  void add(TileValue tile) { tiles_.push_back(std::move(tile)); }
  // An expression of the type with exactly this shape.
  std::optional<TileValue> expression(DType type, TileShape shape, int depth);

 private:
  [[nodiscard]] Draw& draw() const { return gen_.draw; }
  [[nodiscard]] std::vector<Value> leaves();
  [[nodiscard]] TileShape shape_of(const std::string& text) const;
  TileValue any_expression(DType type, int depth);
  TileShape part_shape();
  DType number_type();
  std::optional<TileValue> reduction(const TileValue& source, int dimension);
  void fill(Node& at);
  void elementwise(Node& at);
  void reduce(Node& at);
  void update(Node& at);
  void under_condition(Node& at);
  void declared(Node& at);
  void bits(Node& at);
  void online(Node& loop, const std::string& source, const TileValue& peak, const TileValue& sum);
  void define(Node& at, const TileValue& made);
  // The expression, or a call of a function that gives its tile.
  std::string given(const TileValue& made);
  // The statement, or a call of a function that does it. `view` is what its `$` stands for.
  std::string done(const std::string& statement, const std::string& view = {},
                   const TileValue& stored = {});

  Gen& gen_;
  Node& block_;
  Window window_;
  std::vector<TileValue> tiles_;
  bool in_loop_ = false;
};

}  // namespace kiln::programs
