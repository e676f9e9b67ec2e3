#include "hardmargin/kernel_product.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "hardmargin/expansion.hpp"

namespace hardmargin {
namespace {

// Copied at once: runs of a row that are long enough to fetch, and few enough for the cache.
constexpr std::size_t rows_at_once = 64, strips_side_by_side = 8;

// Strips of a factor whose rows' multipliers stay in the L1 cache.
constexpr std::size_t strips_at_once = 64;

// Distances between points that are in memory at once, unless a few rows have more.
constexpr std::size_t distances_at_once = std::size_t{1} << 22;

// Vectors whose weights of a column are side by side.
constexpr std::size_t vectors_at_once = 8;

// Copies the columns of one strip from a row; lanes beyond the last column are 0.
template <class T>
void copy_lanes(const T* row, const std::vector<std::int32_t>& columns, std::size_t first, T* to) {
    const std::size_t n = std::min(lanes<T>, columns.size() - first);
    const std::int32_t* at = columns.data() + first;
    const bool contiguous = static_cast<std::size_t>(at[n - 1] - at[0]) == n - 1;
    if (n == lanes<T> && contiguous) {
        std::memcpy(to, row + at[0], lanes<T> * sizeof(T));  // of fixed size: a few instructions
        return;
    }
    for (std::size_t l = 0; l < lanes<T>; ++l) to[l] = l < n ? row[at[l]] : T(0);
}

}  // namespace

template <class T>
void KernelProduct<T>::fill(const KernelSource<T>& source, const std::vector<std::int32_t>& rows,
                            Meter& meter) {
    if (source.kind == ValueSource::points) return fill_widths({source}, {this}, rows, meter);
    n_rows_ = rows.size();
    n_strips_ = (n_rows_ + lanes<T> - 1) / lanes<T>;
    rows_ = nullptr;
    if (source.kind == ValueSource::rows) fill_rows(source, rows);
    else if (source.kind == ValueSource::factor) fill_factor(source, rows, meter);
    else fill_square(source, rows, meter);
}

template <class T>
void KernelProduct<T>::fill_square(const KernelSource<T>& source,
                                   const std::vector<std::int32_t>& rows, Meter& meter) {
    resize_square(source, n_rows_);
    const auto row_of = [&](std::size_t i) {
        return source.data + static_cast<std::size_t>(rows[i]) * source.width;
    };
    fill_band(source, rows, 0, n_rows_, row_of, meter);
}

// Distances are evaluated for a band of rows after the other: they are not stored for long.
template <class T>
void KernelProduct<T>::fill_widths(const std::vector<KernelSource<T>>& sources,
                                   const std::vector<KernelProduct*>& products,
                                   const std::vector<std::int32_t>& rows, Meter& meter) {
    const std::size_t n = rows.size(), width = sources.front().width;
    for (std::size_t k = 0; k < products.size(); ++k) products[k]->resize_square(sources[k], n);
    AlignedVector<T> points(n * width);
    for (std::size_t i = 0; i < n; ++i)
        std::copy_n(sources.front().data + static_cast<std::size_t>(rows[i]) * width, width,
                    points.data() + i * width);
    std::vector<std::int32_t> columns(n);
    std::iota(columns.begin(), columns.end(), 0);
    const std::size_t most = round_up(std::max(distances_at_once / n, rows_at_once), rows_at_once);
    const std::size_t band = std::min(n, most);
    RawVector<T> distances(band * n);
    for (std::size_t first = 0; first < n; first += band) {
        const std::size_t end = std::min(first + band, n);
        distance_block(sources.front().metric, points.data(), n, width, first, end,
                       distances.data(), meter);
        for (std::size_t k = 0; k < products.size(); ++k)
            products[k]->fill_band(
                sources[k], columns, first, end,
                [&](std::size_t i) { return distances.data() + (i - first) * n; }, meter);
    }
}

template <class T>
void KernelProduct<T>::resize_square(const KernelSource<T>& source, std::size_t n_rows) {
    n_rows_ = n_rows;
    n_strips_ = (n_rows_ + lanes<T> - 1) / lanes<T>;
    rows_ = nullptr;
    rank_ = 0;
    compact_ = source.compact;
    const std::size_t size = n_strips_ * n_rows_ * lanes<T>;
    if (compact_) small_strips_.resize(size);
    else strips_.resize(size);
}

// Stores rows from `first` to `end`: the given columns of row_of(i).
template <class T>
template <class RowOf>
void KernelProduct<T>::fill_band(const KernelSource<T>& source,
                                 const std::vector<std::int32_t>& columns, std::size_t first,
                                 std::size_t end, RowOf&& row_of, Meter& meter) {
    AlignedVector<T> pieces(strips_side_by_side * rows_at_once * lanes<T>);
    for (; first < end; first += rows_at_once) {
        const std::size_t n = std::min(rows_at_once, end - first);
        meter.tick(4 * n * n_rows_);
        for (std::size_t s = 0; s < n_strips_; s += strips_side_by_side) {
            const std::size_t n_strips = std::min(strips_side_by_side, n_strips_ - s);
            for (std::size_t j = 0; j < n; ++j) {
                const T* from = row_of(first + j);
                for (std::size_t k = 0; k < n_strips; ++k)
                    copy_lanes(from, columns, (s + k) * lanes<T>,
                               pieces.data() + (k * rows_at_once + j) * lanes<T>);
            }
            for (std::size_t k = 0; k < n_strips; ++k)
                store_piece(source, pieces.data() + k * rows_at_once * lanes<T>, n * lanes<T>,
                            ((s + k) * n_rows_ + first) * lanes<T>);
        }
    }
}

template <class T>
void KernelProduct<T>::store_piece(const KernelSource<T>& source, const T* piece, std::size_t n,
                                   std::size_t at) {
    if (source.kind == ValueSource::values) std::copy_n(piece, n, strips_.data() + at);
    else if (compact_) table_.decay_16(piece, source.gamma, small_strips_.data() + at, n);
    else table_.decay(piece, source.gamma, strips_.data() + at, n);
}

template <class T>
void KernelProduct<T>::fill_factor(const KernelSource<T>& source,
                                   const std::vector<std::int32_t>& rows, Meter& meter) {
    rank_ = source.width;
    compact_ = false;
    strips_.assign(n_strips_ * rank_ * lanes<T>, T(0));
    for (std::size_t i = 0; i < n_rows_; ++i) {
        const T* from = source.data + static_cast<std::size_t>(rows[i]) * rank_;
        T* to = strips_.data() + i / lanes<T> * rank_ * lanes<T> + i % lanes<T>;
        for (std::size_t k = 0; k < rank_; ++k) to[k * lanes<T>] = from[k];
        meter.tick(rank_);
    }
}

template <class T>
void KernelProduct<T>::fill_rows(const KernelSource<T>& source,
                                 const std::vector<std::int32_t>& rows) {
    rows_ = &rows;
    sparse_ = source;
    n_entries_ = 0;
    for (const std::int32_t row : rows)
        n_entries_ += static_cast<std::size_t>(source.row_starts[row + 1] - source.row_starts[row]);
    right_.resize(source.width * vectors_at_once);
}

template <class T>
std::size_t KernelProduct<T>::bytes(const KernelSource<T>& source, std::size_t n_rows) {
    switch (source.kind) {
        case ValueSource::rows: return source.width * vectors_at_once * sizeof(T);
        case ValueSource::factor: return n_rows * source.width * sizeof(T);
        default: return n_rows * n_rows * (source.compact ? 2 : sizeof(T));
    }
}

// The weights of the columns, w = gamma * X'a, and then the products Xw.
template <class T>
void KernelProduct<T>::through_weights(const T* vectors, std::size_t n_vectors, T* out,
                                       std::size_t stride) {
    std::fill(right_.begin(), right_.end(), T(0));
    const auto each_entry = [this](std::size_t i, auto&& visit) {
        const auto row = static_cast<std::size_t>((*rows_)[i]);
        for (auto p = sparse_.row_starts[row]; p < sparse_.row_starts[row + 1]; ++p)
            visit(sparse_.data[p],
                  right_.data() + static_cast<std::size_t>(sparse_.indices[p]) * vectors_at_once);
    };
    const T gamma = static_cast<T>(sparse_.gamma);
    for (std::size_t i = 0; i < n_rows_; ++i) {
        T a[vectors_at_once] = {};
        for (std::size_t c = 0; c < n_vectors; ++c) a[c] = gamma * vectors[c * stride + i];
        each_entry(i, [&](T value, T* weights) {
            for (std::size_t c = 0; c < vectors_at_once; ++c) weights[c] += value * a[c];
        });
    }
    for (std::size_t i = 0; i < n_rows_; ++i) {
        T sums[vectors_at_once] = {};
        each_entry(i, [&](T value, const T* weights) {
            for (std::size_t c = 0; c < vectors_at_once; ++c) sums[c] += value * weights[c];
        });
        for (std::size_t c = 0; c < n_vectors; ++c) out[c * stride + i] = sums[c];
    }
}

template <class T>
void KernelProduct<T>::operator()(const T* vectors, int n_vectors, T* out, std::size_t stride) {
    const auto width = static_cast<std::size_t>(n_vectors);
    if (rows_) {
        for (std::size_t c = 0; c < width; c += vectors_at_once)
            through_weights(vectors + c * stride, std::min(vectors_at_once, width - c),
                            out + c * stride, stride);
        return;
    }
    const std::size_t n_inner = rank_ ? rank_ : n_rows_;
    right_.assign(n_inner * width, T(0));
    if (rank_) {  // the factor's transpose first
        for (std::size_t s = 0; s < n_strips_; s += strips_at_once)
            table_.strip_dots(strips_.data() + s * rank_ * lanes<T>,
                              std::min(strips_at_once, n_strips_ - s), rank_,
                              vectors + s * lanes<T>, stride, n_vectors, right_.data());
    } else {
        for (std::size_t c = 0; c < width; ++c)
            for (std::size_t j = 0; j < n_rows_; ++j)
                right_[j * width + c] = vectors[c * stride + j];
    }
    for (std::size_t s = 0; s < n_strips_; ++s) {
        const std::size_t at = s * n_inner * lanes<T>;
        T* to = out + s * lanes<T>;
        if (compact_)
            table_.strip_product_16(small_strips_.data() + at, n_inner, right_.data(), n_vectors,
                                    to, stride);
        else
            table_.strip_product(strips_.data() + at, n_inner, right_.data(), n_vectors, to,
                                 stride);
    }
}

template class KernelProduct<float>;
template class KernelProduct<double>;

}  // namespace hardmargin
