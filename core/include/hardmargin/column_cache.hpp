// Columns cached within a memory limit; the least recently used one is replaced.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/aligned.hpp"

namespace hardmargin {

template <class T>
class ColumnCache {
  public:
    // Callers hold this many columns at once.
    static constexpr std::size_t fewest_columns = 4;

    // Forgets all columns; new ones have `length` values each and keys below `n_keys`.
    void reset(std::size_t n_keys, std::size_t length, std::size_t memory_bytes) {
        if (length != length_) slots_.clear();  // of another length, they would exceed the memory
        slot_of_.assign(n_keys, none);
        length_ = length;
        n_used_ = 0;
        const std::size_t fitting = memory_bytes / std::max<std::size_t>(length * sizeof(T), 1);
        capacity_ = std::max(fewest_columns, std::min(fitting, n_keys));
    }

    // The column, or null if it is not cached.
    const T* find(std::size_t key) {
        const std::uint32_t slot = slot_of_[key];
        if (slot == none) return nullptr;
        slots_[slot].last_use = ++clock_;
        return slots_[slot].values.data();
    }

    bool has(std::size_t key) const { return slot_of_[key] != none; }
    std::size_t room() const { return capacity_ - n_used_; }  // before others are replaced

    // Room for a column that is not cached yet.
    T* add(std::size_t key) {
        std::size_t slot;
        if (n_used_ < capacity_) {
            slot = n_used_++;
            if (slot == slots_.size()) slots_.emplace_back();
        } else {
            slot = oldest();
            slot_of_[slots_[slot].key] = none;
        }
        Slot& s = slots_[slot];
        s.key = key;
        s.last_use = ++clock_;
        s.values.resize(length_);
        slot_of_[key] = static_cast<std::uint32_t>(slot);
        return s.values.data();
    }

  private:
    static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
    struct Slot {
        std::size_t key = 0;
        std::uint64_t last_use = 0;
        RawVector<T> values{};
    };

    std::size_t oldest() const {
        std::size_t found = 0;
        for (std::size_t s = 1; s < n_used_; ++s)
            if (slots_[s].last_use < slots_[found].last_use) found = s;
        return found;
    }

    std::vector<Slot> slots_;
    std::vector<std::uint32_t> slot_of_;  // by key
    std::size_t length_ = 0, capacity_ = 0, n_used_ = 0;
    std::uint64_t clock_ = 0;
};

}  // namespace hardmargin
