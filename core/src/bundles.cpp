#include "hardmargin/bundles.hpp"

#include <algorithm>

namespace hardmargin {
namespace {

// Fewer columns than these cost less as bits, four per byte.
constexpr std::size_t fewest_complete = 5;
constexpr std::size_t fewest_partial = 8;
constexpr std::size_t most_members = 255;

// One row of bits per column: which other columns have been set in the same row.
class Meetings {
  public:
    explicit Meetings(std::size_t n_columns)
        : n_words_((n_columns + 63) / 64), met_(n_columns * n_words_), row_(n_words_) {}

    void note(const std::vector<std::uint32_t>& present) {
        std::fill(row_.begin(), row_.end(), 0);
        for (const std::uint32_t j : present) row_[j / 64] |= std::uint64_t{1} << (j % 64);
        for (const std::uint32_t j : present)
            for (std::size_t w = 0; w < n_words_; ++w) met_[j * n_words_ + w] |= row_[w];
    }

    bool have_met(std::size_t i, std::size_t j) const {
        return (met_[i * n_words_ + j / 64] >> (j % 64)) & 1;
    }

  private:
    std::size_t n_words_;
    std::vector<std::uint64_t> met_, row_;
};

}  // namespace

std::vector<Bundle> find_bundles(const std::vector<Matrix>& matrices,
                                 const std::vector<std::int32_t>* rows,
                                 const std::vector<std::size_t>& columns,
                                 const std::vector<double>& values) {
    Meetings meetings(columns.size());
    std::vector<std::size_t> n_present(columns.size(), 0);
    std::vector<std::uint32_t> present;
    std::size_t n_rows = 0;
    std::vector<std::int32_t> place(matrices.front().n_cols, -1);
    for (std::size_t j = 0; j < columns.size(); ++j)
        place[columns[j]] = static_cast<std::int32_t>(j);
    const bool zero_counts = std::find(values.begin(), values.end(), 0.0) != values.end();
    for (std::size_t m = 0; m < matrices.size(); ++m) {
        RowReader read(matrices[m]);
        const auto* some = m == 0 ? rows : nullptr;
        const std::size_t n = some ? some->size() : matrices[m].n_rows;
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t row = some ? static_cast<std::size_t>((*some)[i]) : i;
            present.clear();
            const auto look = [&](std::size_t j, double x) {
                if (x != values[j]) return;
                present.push_back(static_cast<std::uint32_t>(j));
                ++n_present[j];
            };
            if (matrices[m].is_sparse() && !zero_counts) {
                matrices[m].each(row, [&](std::size_t k, double x) {
                    if (place[k] >= 0) look(static_cast<std::size_t>(place[k]), x);
                });
            } else {
                const double* x = read(row);
                for (std::size_t j = 0; j < columns.size(); ++j) look(j, x[columns[j]]);
            }
            meetings.note(present);
        }
        n_rows += n;
    }

    std::vector<Bundle> bundles;
    for (std::size_t j = 0; j < columns.size(); ++j) {
        const auto fits = [&](const Bundle& bundle) {
            return bundle.members.size() < most_members &&
                   std::none_of(
                       bundle.members.begin(), bundle.members.end(),
                       [&](std::size_t i) { return meetings.have_met(i, j); });
        };
        const auto home = std::find_if(bundles.begin(), bundles.end(), fits);
        if (home == bundles.end()) bundles.push_back({{j}, false});
        else home->members.push_back(j);
    }
    for (Bundle& bundle : bundles) {
        std::size_t n = 0;
        for (const std::size_t j : bundle.members) n += n_present[j];
        bundle.is_complete = n == n_rows;
    }
    std::erase_if(bundles, [](const Bundle& bundle) {
        return bundle.members.size() < (bundle.is_complete ? fewest_complete : fewest_partial);
    });
    return bundles;
}

}  // namespace hardmargin
