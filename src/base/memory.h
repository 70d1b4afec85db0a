// AnonymousMemory: an owned, zeroed range of pages straight from the kernel, in huge pages where
// the system gives them. For weights, KV pages and big work buffers.
//
// Memory is committed when it is first touched. Move-only. Threads: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace quire {

class AnonymousMemory {
 public:
  // Reserves `size_bytes` (0 gives an empty range). kResourceExhausted if the kernel refuses.
  static StatusOr<AnonymousMemory> Reserve(size_t size_bytes);

  AnonymousMemory() = default;
  AnonymousMemory(AnonymousMemory&& other) noexcept;
  AnonymousMemory& operator=(AnonymousMemory&& other) noexcept;
  AnonymousMemory(const AnonymousMemory&) = delete;
  AnonymousMemory& operator=(const AnonymousMemory&) = delete;
  ~AnonymousMemory();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

  // Gives the pages that lie wholly in [offset, offset + size_bytes) back; they read as zero after.
  void Release(size_t offset, size_t size_bytes);

 private:
  std::byte* data_ = nullptr;  // 2 MiB aligned
  size_t size_ = 0;
  void* mapping_ = nullptr;
  size_t mapping_size_ = 0;
};

// Bytes of this process that are in memory now, and the most there have been (VmRSS, VmHWM).
size_t ResidentBytes();
size_t PeakResidentBytes();

}  // namespace quire
