// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace skein {

// Finds shortest paths over the free cells of a grid. A move to one of four sides costs 1; a diagonal move costs
// sqrt(2) and needs both cells beside it free. A*, with the distance without obstacles as heuristic (Hart, Nilsson,
// Raphael 1968).
// Allocates nothing after construction. Not thread-safe.
class ShortestPath {
 public:
  // For grids of `cells` cells, whose border cells must be occupied (see Length).
  explicit ShortestPath(int cells);

  // Length of the shortest path between two cells, 0 from a cell to itself, infinity if there is none. A cell is its
  // index into `occupied`, whose rows are `stride` long. REQUIRES: the free cells are surrounded by occupied ones.
  float Length(const uint8_t* occupied, int stride, int from, int to);

 private:
  struct Entry {
    double bound;  // Lower bound on the length of a path through this cell.
    int cell;
  };
  struct Reached {
    int straight, diagonal;  // Moves of the best path so far.
    uint32_t search;         // The search that wrote this entry.
    bool done;
  };

  uint32_t search_ = 0;
  std::vector<Reached> reached_;
  std::vector<Entry> open_;  // A heap, lowest bound first.
};

}  // namespace skein
