// TestKv: pages for tests of the forward pass, without a cache. Every byte that nothing has written
// is part of a NaN, and pages that the read rule does not name any more are taken away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/kv_view.h"
#include "codec/kv_forms.h"
#include "model/layer_groups.h"

namespace quire {

class TestKv {
 public:
  // Room for one sequence of max_len tokens, in each group and form.
  TestKv(const LayerGroups& groups, std::span<const KvForms> forms, uint32_t max_len);

  // Of each group; valid until the next call of another member.
  std::span<const KvView> views() const { return views_; }

  // Gives what a step from position `begin` up to `end` needs: pages back that it appends to, and
  // nothing else that no row of it reads.
  void Prepare(uint32_t begin, uint32_t end);

  // The bytes of one page, to compare.
  std::span<const std::byte> open_page(size_t group, uint32_t page) const {
    return groups_[group].open.bytes(page);
  }
  std::span<const std::byte> sealed_page(size_t group, uint32_t page) const {
    return groups_[group].sealed.bytes(page);
  }

 private:
  struct Form {
    Form(const KvForm& form, uint32_t num_pages);
    std::span<const std::byte> bytes(uint32_t page) const { return {at(page), page_bytes}; }
    std::byte* at(uint32_t page) const { return first + page * stride; }

    size_t page_bytes, stride;
    std::vector<std::byte> memory;
    std::byte* first = nullptr;
    std::vector<std::byte*> entries;
  };
  struct Group {
    uint32_t window;
    KvForms forms;
    Form open, sealed;
  };

  uint32_t page_size_, num_pages_;
  std::vector<Group> groups_;
  std::vector<KvView> views_;
};

}  // namespace quire
