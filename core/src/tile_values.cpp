// Kernel values of packed rows, and bounds on them from the blocks' boxes.
#include <algorithm>
#include <limits>

#include "hardmargin/aligned.hpp"
#include "hardmargin/block_values.hpp"
#include "hardmargin/tile_kernel.hpp"

namespace hardmargin {
namespace {

template <class T>
class TileValues final : public BlockValues<T> {
  public:
    TileValues(const KernelSpec& kernel, const Layout& layout, const std::vector<Part<T>>& parts,
               bool bounded)
        : kernel_(kernel), tiles_(kernel, layout), shape_(layout.shape()), d_(layout.n_dense()),
          w_(layout.n_bytes()), is_wide_(layout.is_wide()), has_norms_(layout.has_norms()),
          parts_(parts), folder_(parts.empty() ? "" : parts.front().rows->folder),
          bounded_(bounded && kernel.is_distance()), columns_(d_, folder_),
          column_bytes_(w_, folder_) {
        for (const Part<T>& part : parts) {
            for (const auto& block : part.rows->blocks) {
                const std::size_t dense = block.first_tile * d_ * lanes<T>;
                const std::size_t bytes = block.first_strip * w_ * strip_rows;
                const std::size_t norms = block.first_tile * lanes<T>;
                blocks_.push_back(
                    {{part.rows->dense.data() + dense, part.rows->bytes.data() + bytes,
                      has_norms_ ? part.rows->norms.data() + norms : nullptr},
                     block.n_tiles,
                     n_dense_ + dense,
                     n_bytes_ + bytes,
                     n_norms_ + norms});
            }
            n_dense_ += part.rows->dense.size();
            n_bytes_ += part.rows->bytes.size();
            n_norms_ += part.rows->norms.size();
        }
        scratch_.resize(d_ * columns_at_once);
        scratch_bytes_.resize(w_ * columns_at_once);
        if (!bounded_) return;
        n_boxes_ = round_up(blocks_.size(), strip_rows);
        low_.assign(d_ * n_boxes_, std::numeric_limits<T>::max());
        high_.assign(d_ * n_boxes_, std::numeric_limits<T>::lowest());
        make_byte_bounds();
        std::size_t b = 0;
        for (const Part<T>& part : parts)
            for (const auto& block : part.rows->blocks) bound(b++, block.n_rows);
    }

    void open(std::size_t block, std::size_t lane, std::int32_t /*id*/) override {
        const PackedView<T>& t = blocks_[block].rows;
        const std::size_t tile = lane / lanes<T>, in = lane % lanes<T>;
        T* dense = columns_.add();
        for (std::size_t k = 0; k < d_; ++k) dense[k] = t.dense[(tile * d_ + k) * lanes<T> + in];
        std::uint8_t* bytes = column_bytes_.add();
        for (std::size_t w = 0; w < w_; ++w)
            bytes[w] = t.bytes[(lane / strip_rows * w_ + w) * strip_rows + lane % strip_rows];
        if (has_norms_) column_norms_.push_back(t.norms[lane]);
    }

    void values(std::size_t block, const std::int32_t* /*ids*/, std::size_t /*n_rows*/,
                const std::uint32_t* columns, int n_columns, T* out, std::size_t stride) override {
        PackedView<T> of_columns{columns_[columns[0]], column_bytes_[columns[0]],
                                 column_norms_.data() + (has_norms_ ? columns[0] : 0)};
        T norms[columns_at_once];
        if (n_columns > 1) {
            for (int c = 0; c < n_columns; ++c) {
                const auto at = static_cast<std::size_t>(c);
                std::copy_n(columns_[columns[c]], d_, scratch_.data() + at * d_);
                std::copy_n(column_bytes_[columns[c]], w_, scratch_bytes_.data() + at * w_);
                if (has_norms_) norms[c] = column_norms_[columns[c]];
            }
            of_columns = {scratch_.data(), scratch_bytes_.data(), norms};
        }
        tiles_.values(blocks_[block].rows, blocks_[block].n_tiles, of_columns,
                      static_cast<std::size_t>(n_columns), out, stride);
    }

    bool is_bounded() const override { return bounded_; }

    void reach(std::uint32_t column, T* out) const override {
        const Boxes<T> boxes{n_boxes_, low_.data(), high_.data(), byte_bounds_.data()};
        level().table<T>().reach(kernel_, shape_, boxes, columns_[column], column_bytes_[column],
                                 out);
    }

    void keep(std::size_t block, const std::vector<std::uint32_t>& kept) override {
        Tiles& t = blocks_[block];
        PackedView<T>& rows = t.rows;
        if (own_dense_.empty() && own_bytes_.empty()) {  // only blocks that need it are written to
            own_dense_ = {n_dense_, folder_};
            own_bytes_ = {n_bytes_, folder_};
            own_norms_.resize(n_norms_);
        }
        rows.dense = move_lanes(rows.dense, own_dense_.data() + t.own_dense, d_, lanes<T>, kept);
        rows.bytes = move_lanes(rows.bytes, own_bytes_.data() + t.own_bytes, w_, strip_rows, kept);
        if (has_norms_)
            rows.norms = move_lanes(rows.norms, own_norms_.data() + t.own_norms, 1, lanes<T>, kept);
        t.n_tiles = (kept.size() + lanes<T> - 1) / lanes<T>;
        if (bounded_) bound(block, kept.size());
    }

    // Of short rows, columns that are never used would cost more than one pass for several saves.
    std::size_t at_once() const override {
        return is_wide_ ? columns_at_once : cost() >= 40 ? max_columns : 1;
    }

    std::size_t cost() const override { return d_ + w_ / 2 + 8; }

  private:
    struct Tiles {
        PackedView<T> rows;
        std::size_t n_tiles;
        std::size_t own_dense, own_bytes, own_norms;  // their places once rows have been dropped
    };

    // Both tiles and strips are [unit][feature][lane]; `width` is their number of lanes. `to` may
    // be `from`, as lanes are ascending; those that are left in the last unit become zero.
    template <class U>
    static U* move_lanes(const U* from, U* to, std::size_t n_features, std::size_t width,
                         const std::vector<std::uint32_t>& kept) {
        for (std::size_t i = 0; i < round_up(kept.size(), width); ++i)
            for (std::size_t k = 0; k < n_features; ++k)
                to[(i / width * n_features + k) * width + i % width] =
                    i < kept.size()
                        ? from[(kept[i] / width * n_features + k) * width + kept[i] % width]
                        : U(0);
        return to;
    }

    void bound(std::size_t block, std::size_t n_rows) {
        const PackedView<T>& t = blocks_[block].rows;
        for (std::size_t k = 0; k < d_; ++k) {
            T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::lowest();
            for (std::size_t i = 0; i < n_rows; ++i) {
                const T x = t.dense[(i / lanes<T> * d_ + k) * lanes<T> + i % lanes<T>];
                low = std::min(low, x);
                high = std::max(high, x);
            }
            low_[k * n_boxes_ + block] = low;
            high_[k * n_boxes_ + block] = high;
        }
        for (std::size_t w = 0; w < w_; ++w) bound_byte(block, w, n_rows);
    }

    // One table per byte: two rows for a quad, one row for each value of a bundle.
    void make_byte_bounds() {
        for (int g = 0; g < shape_.n_groups; ++g) {
            const BitGroup& group = shape_.groups[g];
            byte_kinds_.insert(byte_kinds_.end(), static_cast<std::size_t>(group.quads),
                               ByteKind::quad);
            byte_kinds_.insert(byte_kinds_.end(),
                               static_cast<std::size_t>(group.complete + group.partial),
                               ByteKind::bundle);
        }
        for (const ByteKind kind : byte_kinds_)
            byte_tables_.emplace_back((kind == ByteKind::quad ? 2 : 256) * n_boxes_);
        for (const auto& table : byte_tables_) byte_bounds_.push_back(table.data());
    }

    void bound_byte(std::size_t block, std::size_t w, std::size_t n_rows) {
        const PackedView<T>& t = blocks_[block].rows;
        std::uint8_t* table = byte_tables_[w].data() + block;
        const auto each_value = [&](auto&& use) {
            for (std::size_t i = 0; i < n_rows; ++i)
                use(t.bytes[(i / strip_rows * w_ + w) * strip_rows + i % strip_rows]);
        };
        if (byte_kinds_[w] == ByteKind::quad) {
            std::uint8_t all = 0x0f, any = 0;
            each_value([&](std::uint8_t x) {
                all &= x;
                any |= x;
            });
            table[0] = n_rows ? all : 0;
            table[n_boxes_] = any;
            return;
        }
        bool occurs[256] = {};
        each_value([&](std::uint8_t x) { occurs[x] = true; });
        for (std::size_t value = 0; value < 256; ++value) {
            const bool one_off = value == 0 || occurs[0];  // a row that has none differs by one
            table[value * n_boxes_] = occurs[value] ? 0 : one_off ? 1 : 2;
        }
    }

    enum class ByteKind { quad, bundle };

    const KernelSpec kernel_;
    TileKernel<T> tiles_;
    const TileShape shape_;
    const std::size_t d_, w_;
    const bool is_wide_, has_norms_;
    const std::vector<Part<T>> parts_;  // keeps the shared rows alive
    const std::string folder_;          // of arrays like these rows
    const bool bounded_;
    std::vector<Tiles> blocks_;
    std::size_t n_dense_ = 0, n_bytes_ = 0, n_norms_ = 0;  // in all blocks
    RowArray<T> own_dense_;
    RowArray<std::uint8_t> own_bytes_;
    AlignedVector<T> own_norms_;
    RowStack<T> columns_;
    RowStack<std::uint8_t> column_bytes_;
    std::vector<T> column_norms_;
    AlignedVector<T> scratch_;
    AlignedVector<std::uint8_t> scratch_bytes_;
    std::size_t n_boxes_ = 0;  // padded
    AlignedVector<T> low_, high_;
    std::vector<ByteKind> byte_kinds_;
    std::vector<AlignedVector<std::uint8_t>> byte_tables_;
    std::vector<const std::uint8_t*> byte_bounds_;
};

}  // namespace

template <class T>
std::unique_ptr<BlockValues<T>> tile_values(const KernelSpec& kernel, const Layout& layout,
                                            const std::vector<Part<T>>& parts, bool bounded) {
    return std::make_unique<TileValues<T>>(kernel, layout, parts, bounded);
}

template std::unique_ptr<BlockValues<float>> tile_values(const KernelSpec&, const Layout&,
                                                         const std::vector<Part<float>>&, bool);
template std::unique_ptr<BlockValues<double>> tile_values(const KernelSpec&, const Layout&,
                                                          const std::vector<Part<double>>&, bool);

}  // namespace hardmargin
