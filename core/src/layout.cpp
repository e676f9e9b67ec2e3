#include "hardmargin/layout.hpp"

#include <algorithm>
#include <cmath>

#include "hardmargin/bundles.hpp"

namespace hardmargin {
namespace {

// Fewer two-valued columns with the same step than this cost less as numbers than as bits.
constexpr std::size_t fewest_bits = 5;

// A group of bits costs about as much as this many numbers, which matters if there are many groups.
constexpr std::size_t cost_of_group = 40;
constexpr std::size_t few_groups = 16;

// The values of each column, if there are at most two, and its sum over the first matrix.
struct Census {
    std::vector<double> first, second, sum;
    std::vector<std::size_t> n_first;  // rows with the first value, if there are at most two
    std::vector<int> distinct;
    std::size_t n_summed = 0, n_rows = 0;

    explicit Census(std::size_t n_cols)
        : first(n_cols), second(n_cols), sum(n_cols), n_first(n_cols, 0), distinct(n_cols, 0) {}

    void visit(const Matrix& matrix, const std::vector<std::int32_t>* rows, bool add_up) {
        const std::size_t n = rows ? rows->size() : matrix.n_rows;
        const auto row = [&](std::size_t i) {
            return rows ? static_cast<std::size_t>((*rows)[i]) : i;
        };
        if (matrix.is_sparse()) visit_entries(matrix, n, row, add_up);
        else visit_rows(matrix, n, row, add_up);
        if (add_up) n_summed = n;
        n_rows += n;
    }

    // The value that marks a two-valued column: the one that is not 0, else the rarer one.
    double mark(std::size_t k) const {
        if (first[k] == 0) return second[k];
        if (second[k] == 0) return first[k];
        return 2 * n_first[k] < n_rows ? first[k] : second[k];
    }

  private:
    template <class Row>
    void visit_rows(const Matrix& matrix, std::size_t n, Row&& row, bool add_up) {
        std::vector<std::size_t> open;  // columns of at most two values so far
        for (std::size_t k = 0; k < distinct.size(); ++k)
            if (distinct[k] <= 2) open.push_back(k);
        const auto visit_row = [&](const auto* x) {
            if (add_up)
                for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += x[k];
            bool closed = false;
            for (const std::size_t k : open) closed |= !note(k, x[k], 1);
            if (closed) std::erase_if(open, [this](std::size_t k) { return distinct[k] > 2; });
        };
        RowReader read(matrix);
        for (std::size_t i = 0; i < n && (add_up || !open.empty()); ++i) {
            if (const float* x = matrix.floats(row(i))) visit_row(x);
            else visit_row(read(row(i)));
        }
    }

    // The stored entries first, then the zeros of each column.
    template <class Row>
    void visit_entries(const Matrix& matrix, std::size_t n, Row&& row, bool add_up) {
        std::vector<std::size_t> n_stored(distinct.size(), 0);
        for (std::size_t i = 0; i < n; ++i)
            matrix.each(row(i), [&](std::size_t k, double x) {
                if (x == 0) return;
                ++n_stored[k];
                if (add_up) sum[k] += x;
                if (distinct[k] <= 2) note(k, x, 1);
            });
        for (std::size_t k = 0; k < distinct.size(); ++k)
            if (n_stored[k] < n && distinct[k] <= 2) note(k, 0.0, n - n_stored[k]);
    }

    // False once a column has more than two values.
    bool note(std::size_t k, double x, std::size_t times) {
        if (distinct[k] == 0) {
            first[k] = x;
            distinct[k] = 1;
        }
        if (x == first[k]) {
            n_first[k] += times;
            return true;
        }
        if (distinct[k] == 2 && x == second[k]) return true;
        if (std::isnan(x)) {  // not even equal to itself
            distinct[k] = 3;
            return false;
        }
        if (distinct[k] == 1) second[k] = x;
        return ++distinct[k] <= 2;
    }
};

}  // namespace

Layout::Layout(const KernelSpec& kernel, const std::vector<Matrix>& matrices,
               const std::vector<std::int32_t>* rows, bool use_bits) {
    const std::size_t n_cols = matrices.front().n_cols;
    has_unit_rows_ = kernel.kind == KernelKind::cosine;
    is_absolute_ = kernel.kind == KernelKind::laplacian;
    if (!kernel.is_distance()) {
        for (std::size_t k = 0; k < n_cols; ++k) columns_.push_back(k);
        centres_.assign(n_cols, 0.0);
        make_slots(n_cols);
        return;
    }
    Census census(n_cols);
    bool centre = true;
    std::vector<bool> is_fixed(n_cols);
    for (std::size_t m = 0; m < matrices.size(); ++m) {
        census.visit(matrices[m], m == 0 ? rows : nullptr, m == 0);
        centre = centre && !matrices[m].is_sparse();
        for (std::size_t k = 0; k < n_cols && m == 0; ++k)
            is_fixed[k] = census.distinct[k] == 1 && std::isfinite(census.first[k]);
    }
    is_squared_ = kernel.is_squared();

    std::vector<std::size_t> two_valued;
    const auto keep_as_number = [&](std::size_t k) {
        const double mean =
            census.n_summed ? census.sum[k] / static_cast<double>(census.n_summed) : 0.0;
        columns_.push_back(k);
        centres_.push_back(centre && std::isfinite(mean) ? mean : 0.0);
    };
    for (std::size_t k = 0; k < n_cols; ++k) {
        if (census.distinct[k] > 1 && is_fixed[k]) fixed_.push_back({k, census.first[k]});
        else if (census.distinct[k] == 2 && use_bits) two_valued.push_back(k);
        else if (census.distinct[k] > 1) keep_as_number(k);
    }

    const auto step = [&](std::size_t k) { return std::abs(census.second[k] - census.first[k]); };
    std::stable_sort(two_valued.begin(), two_valued.end(),
                     [&](std::size_t a, std::size_t b) { return step(a) < step(b); });
    std::vector<std::vector<std::size_t>> groups;
    std::size_t n_grouped = 0;
    for (std::size_t begin = 0, end; begin < two_valued.size(); begin = end) {
        const double c = step(two_valued[begin]);
        for (end = begin; end < two_valued.size() && step(two_valued[end]) == c;) ++end;
        const auto first = two_valued.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = two_valued.begin() + static_cast<std::ptrdiff_t>(end);
        if (end - begin < fewest_bits) {
            std::for_each(first, last, keep_as_number);
            continue;
        }
        groups.emplace_back(first, last);
        n_grouped += end - begin;
    }
    const bool too_many = groups.size() > few_groups && n_grouped < cost_of_group * groups.size();
    for (const auto& columns : groups) {
        if (too_many) {
            std::for_each(columns.begin(), columns.end(), keep_as_number);
            continue;
        }
        std::vector<double> values;
        for (const std::size_t k : columns) values.push_back(census.mark(k));
        const double c = step(columns.front());
        add_group(columns, values, find_bundles(matrices, rows, columns, values),
                  is_squared_ ? c * c : c);
    }
    if (columns_.empty() && fixed_.empty() && flags_.empty())
        keep_as_number(0);  // all rows are equal
    make_slots(n_cols);
}

void Layout::make_slots(std::size_t n_cols) {
    slots_.resize(n_cols);
    for (std::size_t k = 0; k < columns_.size(); ++k) {
        slots_[columns_[k]].dense = static_cast<std::int32_t>(k);
        zeros_are_blank_ = zeros_are_blank_ && centres_[k] == 0;
    }
    is_whole_ = std::is_sorted(columns_.begin(), columns_.end()) && columns_.size() == n_cols;
    for (const Fixed& fixed : fixed_) {
        slots_[fixed.column].is_fixed = true;
        zeros_are_blank_ = zeros_are_blank_ && fixed.value == 0;
    }
    for (std::size_t j = 0; j < flags_.size(); ++j) {
        slots_[flags_[j].column].flag = static_cast<std::int32_t>(j);
        zeros_are_blank_ = zeros_are_blank_ && flags_[j].value != 0;
    }
}

void Layout::add_group(const std::vector<std::size_t>& columns, const std::vector<double>& values,
                       const std::vector<Bundle>& bundles, double weight) {
    std::vector<bool> is_bundled(columns.size(), false);
    for (const Bundle& bundle : bundles)
        for (const std::size_t j : bundle.members) is_bundled[j] = true;

    const auto put = [&](std::size_t j, int byte, unsigned mark) {
        flags_.push_back({columns[j], values[j], static_cast<std::uint32_t>(n_bytes_ + byte),
                          static_cast<std::uint8_t>(mark)});
    };
    BitGroup group{0, 0, 0, weight};
    int n_bits = 0;
    for (std::size_t j = 0; j < columns.size(); ++j)
        if (!is_bundled[j]) {
            put(j, n_bits / 4, 1u << (n_bits % 4));
            ++n_bits;
        }
    group.quads = (n_bits + 3) / 4;
    for (const bool complete : {true, false})
        for (const Bundle& bundle : bundles) {
            if (bundle.is_complete != complete) continue;
            for (std::size_t id = 0; id < bundle.members.size(); ++id)
                put(bundle.members[id], group.bytes(), static_cast<unsigned>(id) + 1);
            ++(complete ? group.complete : group.partial);
        }
    groups_.push_back(group);
    n_bytes_ += group.bytes();
}

}  // namespace hardmargin
