#include "codec/kv_forms.h"

#include "base/errors.h"
#include "codec/kv_format.h"

namespace quire {

StatusOr<KvForms> MakeKvForms(const KvGeometry& geometry, const KvFormOptions& options,
                              uint32_t window) {
  const KvCodec k = options.k_codec, v = options.v_codec;
  KvForms forms;
  forms.open = {.layout = {}, .k_codec = OpenForm(k), .v_codec = OpenForm(v)};
  QUIRE_ASSIGN_OR_RETURN(forms.open.layout,
                         MakeKvLayout(geometry, forms.open.k_codec, forms.open.v_codec));
  if (options.sink_pages.value_or(0) > 1)
    return InvalidArgument("{} sink pages: need 0 or 1", *options.sink_pages);
  if (!IsPageWise(k) && !IsPageWise(v)) return forms;
  forms.sealed = {.layout = {}, .k_codec = k, .v_codec = v};
  QUIRE_ASSIGN_OR_RETURN(forms.sealed.layout, MakeKvLayout(geometry, k, v));
  forms.rule.sink_pages =
      window > 0 ? 0 : options.sink_pages.value_or(DefaultSinkPages(KvFormatOf(k), KvFormatOf(v)));
  forms.rule.recent_pages = options.recent_pages;
  return forms;
}

}  // namespace quire
