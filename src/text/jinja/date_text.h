// A date as a template's strftime_now writes it, in English, whatever the locale.
//
// Known: %a %A %b %B %c %d %D %e %F %H %I %j %m %M %p %R %S %T %w %x %X %y %Y %% and the forms with
// `-` that leave out a leading zero. Errors: kUnsupported for others. Threading: a function.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "base/status.h"

namespace quire::jinja {

StatusOr<std::string> FormatDate(std::string_view format, const std::tm& time);

}  // namespace quire::jinja
