#include "hardmargin/tile_kernel.hpp"

#include <algorithm>

namespace hardmargin {

template <class T>
TileKernel<T>::TileKernel(const KernelSpec& kernel, const Layout& layout)
    : kernel_(kernel), shape_(layout.shape()), d_(layout.n_dense()), w_(layout.n_bytes()),
      is_wide_(layout.is_wide()) {
    distance_.metric_only = true;
    bytes_only_.dense = 0;
    if (is_wide_ && w_) shares_.resize(strip_rows * most_columns);
}

template <class T>
void TileKernel<T>::values(PackedView<T> rows, std::size_t n_tiles, const PackedView<T>& columns,
                           std::size_t n_columns, T* out, std::size_t stride) {
    if (!is_wide_)
        return from_differences(kernel_, shape_, rows, n_tiles, columns, n_columns, out, stride);
    constexpr std::size_t of_strip = strip_rows / lanes<T>;
    for (; n_tiles; rows = at(rows, strip_rows), out += strip_rows) {
        const std::size_t n = std::min(of_strip, n_tiles);
        from_products(rows, n, columns, n_columns, out, stride);
        n_tiles -= n;
    }
}

template <class T>
void TileKernel<T>::from_differences(const KernelSpec& kernel, const TileShape& shape,
                                     const PackedView<T>& rows, std::size_t n_tiles,
                                     const PackedView<T>& columns, std::size_t n_columns, T* out,
                                     std::size_t stride) const {
    const auto d = static_cast<std::size_t>(shape.dense);
    for (std::size_t c = 0; c < n_columns; c += max_columns)
        table_.values(kernel, shape, rows.dense, rows.bytes, n_tiles, columns.dense + c * d,
                      columns.bytes + c * w_,
                      static_cast<int>(std::min<std::size_t>(max_columns, n_columns - c)),
                      out + c * stride, stride);
}

// Of the rows of a strip.
template <class T>
void TileKernel<T>::from_products(const PackedView<T>& rows, std::size_t n_tiles,
                                  const PackedView<T>& columns, std::size_t n_columns, T* out,
                                  std::size_t stride) {
    const std::size_t n_rows = n_tiles * lanes<T>;
    table_.products(rows.dense, n_tiles, d_, columns.dense, n_columns, out, stride);
    if (w_)
        from_differences(distance_, bytes_only_, rows, n_tiles, columns, n_columns, shares_.data(),
                         n_rows);
    std::uint64_t is_rough[most_columns];
    table_.finish(kernel_, rows.norms, columns.norms, w_ ? shares_.data() : nullptr, n_columns, out,
                  stride, n_rows, is_rough);
    for (std::size_t c = 0; c < n_columns; ++c)
        if (is_rough[c])
            evaluate_again(rows, n_tiles, at(columns, c), is_rough[c], out + c * stride);
}

// From differences, and only for the rows that need it: no value may depend on the others.
template <class T>
void TileKernel<T>::evaluate_again(const PackedView<T>& rows, std::size_t n_tiles,
                                   const PackedView<T>& column, std::uint64_t chosen,
                                   T* out) const {
    alignas(64) T exact[strip_rows];
    const std::size_t step = w_ ? n_tiles * lanes<T> : lanes<T>;  // bytes are in whole strips
    for (std::size_t i = 0; i < n_tiles * lanes<T>; i += step) {
        if (!(chosen >> i & (~std::uint64_t{0} >> (64 - step)))) continue;
        from_differences(kernel_, shape_, at(rows, i), step / lanes<T>, column, 1, exact, step);
        for (std::size_t j = 0; j < step; ++j)
            if (chosen >> (i + j) & 1) out[i + j] = exact[j];
    }
}

template class TileKernel<float>;
template class TileKernel<double>;

}  // namespace hardmargin
