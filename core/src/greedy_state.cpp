#include "hardmargin/greedy_state.hpp"

#include <algorithm>
#include <unordered_set>

namespace hardmargin {

Places places_of(const std::vector<GreedyBlock>& blocks, const std::vector<std::int32_t>& ids,
                 const std::int32_t* next_copy) {
    Places places;
    for (std::size_t b = 0; b < blocks.size(); ++b)
        for (std::size_t lane = 0; lane < blocks[b].n_rows; ++lane)
            for (std::int32_t id = ids[blocks[b].begin + lane]; id >= 0;
                 id = next_copy ? next_copy[id] : -1)
                places[id] = {b, lane};
    return places;
}

bool are_blocks_sound(const std::vector<GreedyBlock>& blocks, const std::vector<std::int32_t>& ids,
                      const std::vector<GreedyBlock>& packed, const Places& places,
                      std::size_t tile_rows, std::size_t n_stages, std::size_t n_spent) {
    std::size_t n_found_spent = 0;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const GreedyBlock& block = blocks[b];
        if (block.n_rows > packed[b].n_rows || block.n_spent > block.n_rows) return false;
        const std::size_t n_lanes = block.n_rows == packed[b].n_rows
                                        ? packed[b].n_lanes
                                        : round_up(block.n_rows, tile_rows);
        if (block.n_lanes != n_lanes) return false;
        if (block.first_best != unknown &&
            (block.first_best < block.begin || block.first_best - block.begin >= block.n_rows))
            return false;
        for (const std::uint32_t stage : block.pending)
            if (stage >= n_stages) return false;
        for (std::size_t i = 0, next = 0; i < block.n_rows; ++i) {
            const auto found = places.find(ids[block.begin + i]);
            if (found == places.end() || found->second.first != b || found->second.second < next)
                return false;
            next = found->second.second + 1;
        }
        n_found_spent += block.n_spent + packed[b].n_rows - block.n_rows;
    }
    return n_found_spent == n_spent;
}

bool are_stages_sound(const std::vector<GreedyStage>& stages, const GreedyResult& result,
                      const Places& places) {
    const std::size_t n = stages.size(), n_columns = result.support.size();
    if (result.rows.size() != n || result.steps.size() != n || result.losses.size() != n ||
        result.multipliers.size() != n_columns)
        return false;
    const auto is_packed = [&](std::int32_t id) { return places.contains(id); };
    const auto is_open = [&](const GreedyStage& stage) { return stage.column < n_columns; };
    const std::unordered_set<std::int32_t> support(result.support.begin(), result.support.end());
    return support.size() == n_columns && std::all_of(support.begin(), support.end(), is_packed) &&
           std::all_of(result.rows.begin(), result.rows.end(), is_packed) &&
           std::all_of(stages.begin(), stages.end(), is_open);
}

}  // namespace hardmargin
