#include "hardmargin/rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace hardmargin {
namespace {

// Rows one after another, as the kd-tree reads them: numbers, bits, and values of bundles.
template <class T>
class LooseRows {
  public:
    const std::size_t n_dense, n_bytes;
    RowArray<T> dense;
    RowArray<std::uint8_t> bytes;

    LooseRows(const TileShape& shape, std::size_t n, const std::string& folder)
        : n_dense(static_cast<std::size_t>(shape.dense)),
          n_bytes(static_cast<std::size_t>(shape.bytes)), dense(n * n_dense, folder),
          bytes(n * n_bytes, folder) {
        for (std::size_t k = 0; k < n_dense; ++k) features_.push_back({k, 0, 1.0f, false});
        std::size_t byte = 0;
        for (int g = 0; g < shape.n_groups; ++g) {
            const auto weight = static_cast<float>(shape.groups[g].weight);
            for (int q = 0; q < shape.groups[g].quads; ++q, ++byte)
                for (int bit = 0; bit < 4; ++bit) features_.push_back({byte, bit, weight, false});
            for (int q = shape.groups[g].quads; q < shape.groups[g].bytes(); ++q, ++byte)
                features_.push_back({byte, 0, weight, true});
        }
    }

    std::size_t n_features() const { return features_.size(); }

    float feature(std::size_t row, std::size_t k) const {
        const Feature& f = features_[k];
        if (k < n_dense) return static_cast<float>(dense[row * n_dense + k]);
        const std::uint8_t x = bytes[row * n_bytes + f.at];
        return static_cast<float>(f.is_bundle ? x : (x >> f.bit) & 1);
    }

    // Half the mean distance between two of the rows along one feature: for a number its variance.
    float spread(const std::vector<std::uint32_t>& rows, std::size_t k) const {
        const auto n = static_cast<float>(rows.size());
        if (features_[k].is_bundle) {
            float count[256] = {}, same = 0;
            for (const std::uint32_t row : rows)
                count[static_cast<std::size_t>(feature(row, k))] += 1;
            for (const float c : count) same += c * c;
            return features_[k].weight * (1 - same / (n * n));
        }
        const float origin = feature(rows.front(), k);
        float sum = 0, squares = 0;
        for (const std::uint32_t row : rows) {
            const float x = feature(row, k) - origin;
            sum += x;
            squares += x * x;
        }
        return features_[k].weight * (squares - sum * sum / n) / n;
    }

  private:
    struct Feature {
        std::size_t at;
        int bit;
        float weight;
        bool is_bundle;
    };
    std::vector<Feature> features_;
};

// The first of every set of rows with the same bytes; `next_copy` leads to the others.
template <class T>
std::vector<std::uint32_t> first_copies(const LooseRows<T>& loose,
                                        const std::vector<std::int32_t>& rows,
                                        std::int32_t* next_copy) {
    const std::size_t w = loose.n_bytes;
    const auto content = [&](std::size_t row) {
        return std::string_view(reinterpret_cast<const char*>(loose.bytes.data()) + row * w, w);
    };
    std::unordered_map<std::string_view, std::size_t> last;
    last.reserve(rows.size());
    std::vector<std::uint32_t> first;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const auto [known, is_new] = last.try_emplace(content(row), row);
        if (is_new) {
            first.push_back(static_cast<std::uint32_t>(row));
        } else {
            next_copy[rows[known->second]] = rows[row];
            known->second = row;
        }
    }
    return first;
}

// Sorts rows so that each run of `block_rows` holds neighbours, in ascending order.
template <class T>
class KdOrder {
  public:
    KdOrder(const LooseRows<T>& rows, std::vector<std::uint32_t>& sorted, std::size_t block_rows,
            Meter& meter)
        : rows_(rows), order_(sorted), block_rows_(block_rows), meter_(meter) {
        halve(0, order_.size());
    }

  private:
    // Splits at a multiple of the block size, so that all blocks but the last are full.
    void halve(std::size_t begin, std::size_t end) {
        const std::size_t n = end - begin;
        if (n <= block_rows_) {
            std::sort(order_.begin() + static_cast<std::ptrdiff_t>(begin),
                      order_.begin() + static_cast<std::ptrdiff_t>(end));
            return;
        }
        const std::size_t k = widest(begin, end);
        const std::size_t n_blocks = (n + block_rows_ - 1) / block_rows_;
        const std::size_t half = n_blocks / 2 * block_rows_;
        keyed_.resize(n);
        for (std::size_t i = 0; i < n; ++i)
            keyed_[i] = {key_of(order_[begin + i], k), order_[begin + i]};
        std::nth_element(keyed_.begin(), keyed_.begin() + static_cast<std::ptrdiff_t>(half),
                         keyed_.end());
        for (std::size_t i = 0; i < n; ++i) order_[begin + i] = keyed_[i].second;
        meter_.tick(n * 16);
        halve(begin, begin + half);
        halve(begin + half, end);
    }

    // NaN cannot be sorted.
    float key_of(std::uint32_t row, std::size_t k) const {
        const float x = rows_.feature(row, k);
        return std::isnan(x) ? 0.0f : x;
    }

    // The feature with the largest spread over a sample of the rows.
    std::size_t widest(std::size_t begin, std::size_t end) {
        constexpr std::size_t sample_size = 128;
        sample_.clear();
        for (std::size_t i = begin; i < end; i += (end - begin) / sample_size + 1)
            sample_.push_back(order_[i]);
        std::size_t best = 0;
        float best_spread = -1.0f;
        for (std::size_t k = 0; k < rows_.n_features(); ++k) {
            const float spread = rows_.spread(sample_, k);
            if (spread > best_spread) {
                best_spread = spread;
                best = k;
            }
        }
        return best;
    }

    const LooseRows<T>& rows_;
    std::vector<std::uint32_t>& order_;
    const std::size_t block_rows_;
    Meter& meter_;
    std::vector<std::uint32_t> sample_;
    std::vector<std::pair<float, std::uint32_t>> keyed_;
};

}  // namespace

template <class T>
PackedRows<T>::PackedRows(std::size_t n_rows, std::size_t block_rows, std::size_t n_dense,
                          std::size_t n_bytes, const std::string& in_folder)
    : folder(in_folder) {
    std::size_t n_tiles = 0, n_strips = 0;
    for (std::size_t begin = 0; begin < n_rows; begin += block_rows) {
        const std::size_t n = std::min(block_rows, n_rows - begin);
        const std::size_t tiles = (n + lanes<T> - 1) / lanes<T>;
        blocks.push_back({n_tiles, tiles, n_strips, n});
        n_tiles += tiles;
        n_strips += (n + strip_rows - 1) / strip_rows;
    }
    ids.assign(n_tiles * lanes<T>, -1);
    dense = {n_tiles * n_dense * lanes<T>, folder};
    bytes = {n_strips * n_bytes * strip_rows, folder};
}

template <class T>
PackedRows<T> pack_rows(const Layout& layout, const Matrix& matrix,
                        const std::vector<std::int32_t>& rows, BlockOrder order,
                        std::size_t block_rows, std::int32_t* next_copy, const std::string& folder,
                        Meter& meter) {
    const std::size_t n = rows.size(), d = layout.n_dense(), w = layout.n_bytes();
    RowPacker packer(layout, matrix);

    // Calls put(place in `rows`, dense, its stride, bytes, their stride) for all of `kept`.
    const auto fill = [&](const std::vector<std::uint32_t>& kept, auto&& put) {
        PackedRows<T> packed(kept.size(), block_rows, d, w, folder);
        for (std::size_t b = 0; b < packed.blocks.size(); ++b)
            for (std::size_t i = 0; i < packed.blocks[b].n_rows; ++i) {
                const std::size_t tile = packed.blocks[b].first_tile + i / lanes<T>;
                const std::size_t strip = packed.blocks[b].first_strip + i / strip_rows;
                const std::uint32_t row = kept[b * block_rows + i];
                packed.ids[packed.blocks[b].first_tile * lanes<T> + i] = rows[row];
                put(row, packed.dense.data() + tile * d * lanes<T> + i % lanes<T>, lanes<T>,
                    packed.bytes.data() + strip * w * strip_rows + i % strip_rows, strip_rows);
                meter.tick(matrix.n_cols);
            }
        if (!layout.has_norms()) return packed;
        packed.norms.resize(packed.ids.size());
        level().table<T>().tile_norms(packed.dense.data(), packed.ids.size() / lanes<T>, d,
                                      packed.norms.data());
        return packed;
    };
    const auto pack = [&](std::size_t row, T* dense, std::size_t stride, std::uint8_t* bytes,
                          std::size_t byte_stride) {
        packer(static_cast<std::size_t>(rows[row]), dense, stride, bytes, byte_stride);
    };
    std::vector<std::uint32_t> kept(n);
    std::iota(kept.begin(), kept.end(), 0u);
    const bool merge = next_copy && d == 0;
    if (order == BlockOrder::natural && !merge) return fill(kept, pack);

    LooseRows<T> loose(layout.shape(), n, folder);
    for (std::size_t i = 0; i < n; ++i) {
        pack(i, loose.dense.data() + i * d, 1, loose.bytes.data() + i * w, 1);
        meter.tick(matrix.n_cols);
    }
    if (merge) kept = first_copies(loose, rows, next_copy);
    if (order == BlockOrder::kd_tree) KdOrder<T>(loose, kept, block_rows, meter);
    return fill(kept, [&](std::size_t row, T* dense, std::size_t stride, std::uint8_t* bytes,
                          std::size_t byte_stride) {
        for (std::size_t k = 0; k < d; ++k) dense[k * stride] = loose.dense[row * d + k];
        for (std::size_t k = 0; k < w; ++k) bytes[k * byte_stride] = loose.bytes[row * w + k];
    });
}

template struct PackedRows<float>;
template struct PackedRows<double>;
template PackedRows<float> pack_rows(const Layout&, const Matrix&, const std::vector<std::int32_t>&,
                                     BlockOrder, std::size_t, std::int32_t*, const std::string&,
                                     Meter&);
template PackedRows<double> pack_rows(const Layout&, const Matrix&,
                                      const std::vector<std::int32_t>&, BlockOrder, std::size_t,
                                      std::int32_t*, const std::string&, Meter&);

}  // namespace hardmargin
