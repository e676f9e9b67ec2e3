// Whole columns of a machine's kernel matrix, one value per lane, cached as memory allows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hardmargin/block_values.hpp"
#include "hardmargin/column_cache.hpp"

namespace hardmargin {

// Rows by how much they violate, or lanes of such rows: the least values first.
class WorstFirst {
  public:
    void add(double value, std::size_t lane) { rows_.emplace_back(value, lane); }

    std::vector<std::size_t> first(std::size_t n) {
        n = std::min(n, rows_.size());
        std::partial_sort(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(n),
                          rows_.end());
        std::vector<std::size_t> lanes;
        for (std::size_t i = 0; i < n; ++i) lanes.push_back(rows_[i].second);
        return lanes;
    }

  private:
    std::vector<std::pair<double, std::size_t>> rows_;
};

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

    bool has(std::size_t lane) const { return cache_.has(lane); }

    // Valid until a few more columns have been requested. If it has to be evaluated, so are those
    // of likely(n), at most n lanes that have none but may need one soon: several columns in one
    // pass over the rows cost much less than in several. `n_new` counts them.
    template <class Likely>
    const T* get(std::size_t lane, std::size_t& n_new, Likely&& likely) {
        const T* kept = cache_.find(lane);
        n_new = 0;
        if (kept) return kept;
        const std::size_t room = std::max<std::size_t>(cache_.room(), 1);
        std::vector<std::size_t> lanes_of = likely(std::min(room, values_.at_once()) - 1);
        lanes_of.insert(lanes_of.begin(), lane);
        n_new = lanes_of.size();
        evaluate(lanes_of);
        return cache_.find(lane);
    }

  private:
    static constexpr std::uint32_t unopened = static_cast<std::uint32_t>(-1);
    struct Block {
        std::size_t begin, n_rows;
    };

    void evaluate(const std::vector<std::size_t>& lanes_of) {
        std::uint32_t opened[columns_at_once];
        T* columns[columns_at_once];
        const std::size_t n = lanes_of.size();
        for (std::size_t c = 0; c < n; ++c) {
            const std::size_t lane = lanes_of[c];
            if (opened_[lane] == unopened) {
                const std::uint32_t b = block_of_[lane];
                values_.open(b, lane - blocks_[b].begin, ids_[lane]);
                opened_[lane] = n_opened_++;
            }
            opened[c] = opened_[lane];
            columns[c] = cache_.add(lane);
        }
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            const std::size_t begin = blocks_[b].begin;
            const std::size_t end = b + 1 < blocks_.size() ? blocks_[b + 1].begin : ids_.size();
            buffer_.resize(std::max(buffer_.size(), n * (end - begin)));
            values_.values(b, ids_.data() + begin, blocks_[b].n_rows, opened, static_cast<int>(n),
                           buffer_.data(), end - begin);
            for (std::size_t c = 0; c < n; ++c)
                std::copy_n(buffer_.data() + c * (end - begin), end - begin, columns[c] + begin);
        }
        n_values_ += n * n_rows_;
    }

    BlockValues<T>& values_;
    std::vector<Block> blocks_;
    std::vector<std::int32_t> ids_;        // by lane
    std::vector<std::uint32_t> block_of_;  // by lane
    std::vector<std::uint32_t> opened_;    // by lane: its number as a column of `values_`
    std::uint32_t n_opened_ = 0;
    std::size_t n_rows_ = 0;
    std::uint64_t n_values_ = 0;
    ColumnCache<T> cache_;
    AlignedVector<T> buffer_;  // of a block
};

}  // namespace hardmargin
