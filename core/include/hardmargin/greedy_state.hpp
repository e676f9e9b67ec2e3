// Whether the state of a greedy machine, which may come from a damaged file, can be that of the
// rows that are packed: indices that are not of these rows would be followed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hardmargin/greedy.hpp"

namespace hardmargin {

inline constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();

struct GreedyBlock {
    std::size_t begin;   // of its lanes
    std::size_t n_rows;  // lanes in use
    std::size_t n_lanes;
    double label;
    std::size_t n_spent = 0;               // rows that cannot be chosen again
    std::size_t first_best = unknown;      // lane of the best row, if known
    std::vector<std::uint32_t> pending{};  // stages not applied yet
};

struct GreedyStage {
    std::uint32_t column;
    double label;
    double step;
};

// Where rows are packed: their blocks, and their lanes within. Equal rows share a place.
using Places = std::unordered_map<std::int32_t, std::pair<std::size_t, std::size_t>>;

Places places_of(const std::vector<GreedyBlock>& blocks, const std::vector<std::int32_t>& ids,
                 const std::int32_t* next_copy);

// Whether the blocks that were read have some of the rows that are packed, in their order.
// `tile_rows` is the number of lanes that a block is padded to a multiple of.
bool are_blocks_sound(const std::vector<GreedyBlock>& blocks, const std::vector<std::int32_t>& ids,
                      const std::vector<GreedyBlock>& packed, const Places& places,
                      std::size_t tile_rows, std::size_t n_stages, std::size_t n_spent);

// Whether the stages that were read, and what they led to, are of rows that are packed.
bool are_stages_sound(const std::vector<GreedyStage>& stages, const GreedyResult& result,
                      const Places& places);

}  // namespace hardmargin
