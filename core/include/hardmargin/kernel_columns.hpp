// Whole columns of a machine's kernel matrix, one value per lane, cached as memory allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/block_values.hpp"
#include "hardmargin/column_cache.hpp"

namespace hardmargin {

template <class T>
class KernelColumns {
  public:
    KernelColumns(const std::vector<Part<T>>& parts, BlockValues<T>& values,
                  std::size_t memory_bytes)
        : values_(values) {
        for (const Part<T>& part : parts)
            for (const auto& b : part.rows->blocks) {
                blocks_.push_back({ids_.size(), b.n_rows});
                const auto* ids = part.rows->ids.data() + b.first_tile * lanes<T>;
                ids_.insert(ids_.end(), ids, ids + b.n_tiles * lanes<T>);
                block_of_.insert(block_of_.end(), b.n_tiles * lanes<T>,
                                 static_cast<std::uint32_t>(blocks_.size() - 1));
                n_rows_ += b.n_rows;
            }
        opened_.assign(ids_.size(), unopened);
        cache_.reset(ids_.size(), ids_.size(), memory_bytes);
    }

    std::int32_t id(std::size_t lane) const { return ids_[lane]; }  // -1 for padding
    std::uint64_t n_values() const { return n_values_; }
    std::size_t work() const { return n_rows_ * values_.cost(); }  // of one column

    // Valid until a few more columns have been requested. Sets `is_new` if it had to be evaluated.
    const T* get(std::size_t lane, bool& is_new) {
        const T* kept = cache_.find(lane);
        is_new = !kept;
        if (kept) return kept;
        if (opened_[lane] == unopened) {
            const std::uint32_t b = block_of_[lane];
            values_.open(b, lane - blocks_[b].begin, ids_[lane]);
            opened_[lane] = n_opened_++;
        }
        T* column = cache_.add(lane);
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            const std::size_t begin = blocks_[b].begin;
            const std::size_t end = b + 1 < blocks_.size() ? blocks_[b + 1].begin : ids_.size();
            values_.values(b, ids_.data() + begin, blocks_[b].n_rows, &opened_[lane], 1,
                           column + begin, end - begin);
        }
        n_values_ += n_rows_;
        return column;
    }

  private:
    static constexpr std::uint32_t unopened = static_cast<std::uint32_t>(-1);
    struct Block {
        std::size_t begin, n_rows;
    };

    BlockValues<T>& values_;
    std::vector<Block> blocks_;
    std::vector<std::int32_t> ids_;        // by lane
    std::vector<std::uint32_t> block_of_;  // by lane
    std::vector<std::uint32_t> opened_;    // by lane: its number as a column of `values_`
    std::uint32_t n_opened_ = 0;
    std::size_t n_rows_ = 0;
    std::uint64_t n_values_ = 0;
    ColumnCache<T> cache_;
};

}  // namespace hardmargin
