// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace skein {

// Shortest ways over the free cells of a grid: 1 to each of four sides, sqrt(2) to a corner if both cells beside it are
// free. A search that is led by the distance without obstacles (A*; Hart, Nilsson, Raphael 1968).
// Allocates nothing after construction. Not thread-safe.
class ShortestPath {
 public:
  // For grids of `cells` cells; those around them may not be free (see Length).
  explicit ShortestPath(int cells);

  // Length of the shortest way, 0 from a cell to itself, infinity if there is none. A cell is its index into
  // `occupied`, whose rows are `stride` long. REQUIRES: the cells that are not occupied are surrounded by such that
  // are.
  float Length(const uint8_t* occupied, int stride, int from, int to);

 private:
  struct Entry {
    double bound;  // On the length of a way through this cell.
    int cell;
  };
  struct Reached {
    int straight, diagonal;  // Moves of the best way so far.
    uint32_t search;         // In which search that was.
    bool done;
  };

  uint32_t search_ = 0;
  std::vector<Reached> reached_;
  std::vector<Entry> open_;  // A heap, lowest bound first.
};

}  // namespace skein
