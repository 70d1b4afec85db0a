#include "model/test_kv.h"

#include <memory>

namespace quire {

// 0xFF everywhere is a NaN in f32 and in f16. 64 bytes behind a page are readable.
TestKv::Form::Form(const KvForm& form, uint32_t num_pages)
    : page_bytes(form.layout.page_bytes()),
      stride(page_bytes == 0 ? 0 : page_bytes + 64),
      memory(stride * num_pages + 64, std::byte{0xFF}),
      entries(num_pages, nullptr) {
  void* at = memory.data();
  size_t space = memory.size();
  first = static_cast<std::byte*>(std::align(64, 1, at, space));
}

TestKv::TestKv(const LayerGroups& groups, std::span<const KvForms> forms, uint32_t max_len)
    : page_size_(forms[0].open.layout.page_size),
      num_pages_((max_len + page_size_ - 1) / page_size_) {
  for (size_t i = 0; i < groups.size(); ++i)
    groups_.push_back({.window = groups[i].window,
                       .forms = forms[i],
                       .open = Form(forms[i].open, num_pages_),
                       .sealed = Form(forms[i].sealed, num_pages_)});
  for (Group& group : groups_)
    views_.push_back({.pages = group.open.entries.data(),
                      .sealed = group.forms.has_sealed() ? group.sealed.entries.data() : nullptr,
                      .num_pages = num_pages_});
}

void TestKv::Prepare(uint32_t begin, uint32_t end) {
  const uint32_t own = begin / page_size_;
  for (Group& group : groups_) {
    const bool windowed = group.window > 0 && begin >= group.window;
    const uint32_t first_page = windowed ? (begin - group.window + 1) / page_size_ : 0;
    for (uint32_t page = 0; page < num_pages_; ++page) {
      const bool is_visible = page >= first_page && page * page_size_ < end;
      const bool is_open = !group.forms.has_sealed() || group.forms.rule.ReadsOpen(own, page);
      group.open.entries[page] = is_visible && is_open ? group.open.at(page) : nullptr;
      group.sealed.entries[page] =
          is_visible && group.forms.has_sealed() ? group.sealed.at(page) : nullptr;
    }
  }
}

}  // namespace quire
