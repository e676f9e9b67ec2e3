// Arrays of packed rows: in memory or, where there are too many for it, in temporary files.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hardmargin {

// Zeros that start on a cache line, in memory or in a file of `folder`, which is gone with them.
// Pages of a file are not the process's own: the system can write them back and drop them. Throws
// std::filesystem::filesystem_error if the disk is full.
void* map_zeros(std::size_t bytes, const std::string& folder);
void unmap(void* p, std::size_t bytes, bool in_file);

template <class T>
class RowArray {
  public:
    RowArray() = default;
    // `folder` is empty for arrays in memory.
    RowArray(std::size_t n, const std::string& folder)
        : data_(n ? static_cast<T*>(map_zeros(n * sizeof(T), folder)) : nullptr), n_(n),
          in_file_(!folder.empty()) {}
    RowArray(RowArray&& other) noexcept { swap(other); }
    RowArray& operator=(RowArray&& other) noexcept {
        swap(other);
        return *this;
    }
    ~RowArray() {
        if (data_) unmap(data_, n_ * sizeof(T), in_file_);
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    std::size_t size() const { return n_; }
    bool empty() const { return n_ == 0; }

  private:
    void swap(RowArray& other) {
        std::swap(data_, other.data_);
        std::swap(n_, other.n_);
        std::swap(in_file_, other.in_file_);
    }

    T* data_ = nullptr;
    std::size_t n_ = 0;
    bool in_file_ = false;
};

// Rows of equal length, added one by one; those added before stay where they are.
template <class T>
class RowStack {
  public:
    RowStack(std::size_t length, const std::string& folder)
        : length_(length), folder_(folder),
          per_chunk_((folder.empty() ? small_chunk : large_chunk) / (length * sizeof(T) + 1) + 1) {}

    T* add() {
        if (n_ % per_chunk_ == 0) chunks_.emplace_back(per_chunk_ * length_, folder_);
        return chunks_.back().data() + n_++ % per_chunk_ * length_;
    }
    const T* operator[](std::size_t i) const {
        return chunks_[i / per_chunk_].data() + i % per_chunk_ * length_;
    }

  private:
    static constexpr std::size_t small_chunk = std::size_t{1} << 16;
    static constexpr std::size_t large_chunk = std::size_t{1} << 22;  // one file each

    const std::size_t length_;
    const std::string folder_;
    const std::size_t per_chunk_;
    std::vector<RowArray<T>> chunks_;
    std::size_t n_ = 0;
};

}  // namespace hardmargin
