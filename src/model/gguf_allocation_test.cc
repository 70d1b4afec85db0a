// No allocation is larger than the bytes of the header warrant, whatever the counts in it claim. In
// a program of its own because it counts every allocation.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "model/gguf_header.h"
#include "model/gguf_writer.h"
#include "model/vocabulary_reader.h"

namespace {
std::atomic<size_t> g_largest{0};
}  // namespace

// Not inlined: the compiler would pair one of them with the other's built-in partner and warn.
[[gnu::noinline]] void* operator new(size_t size) {
  size_t largest = g_largest;
  while (size > largest && !g_largest.compare_exchange_weak(largest, size)) {
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace quire {
namespace {

size_t LargestAllocation(const Bytes& bytes, uint64_t file_bytes) {
  g_largest = 0;
  const auto parsed = ParseGguf(bytes, file_bytes);
  if (parsed.ok() && parsed->has_value()) (void)ReadVocabulary(**parsed, nullptr).ok();
  return g_largest;
}

// Claims of every size in a small header, in a file that says it is huge: the largest allocation
// stays within some small multiple of the bytes that are there.
TEST(GgufAllocation, FollowsTheBytesThatAreThereAndNotTheClaims) {  // GGUF-09
  constexpr uint64_t kHugeFile = uint64_t{1} << 50;
  const size_t bound = 16 * TinyLlama().Header().size();
  for (int bits = 8; bits < 64; ++bits) {
    const uint64_t claim = uint64_t{1} << bits;
    GgufWriter keys = TinyLlama();
    keys.claimed_keys = claim;
    GgufWriter tensors = TinyLlama();
    tensors.claimed_tensors = claim;
    GgufWriter text = TinyLlama();
    text.SetRaw("text", static_cast<uint32_t>(GgufType::kString), GgufWriter::Encode(claim));
    for (const GgufWriter& writer : {keys, tensors, text}) {
      EXPECT_LT(LargestAllocation(writer.Header(), kHugeFile), bound) << "2^" << bits;
      EXPECT_LT(LargestAllocation(writer.Header(), writer.Header().size()), bound) << "2^" << bits;
    }
    for (const uint32_t element_type : {0u, 4u, 6u, 8u, 12u}) {
      GgufWriter list = TinyLlama();
      list.SetRawArray("tokenizer.ggml.tokens", element_type, claim, Bytes(64));
      EXPECT_LT(LargestAllocation(list.Header(), kHugeFile), bound) << "2^" << bits;
    }
  }
}

}  // namespace
}  // namespace quire
