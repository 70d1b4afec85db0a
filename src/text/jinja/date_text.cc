#include "text/jinja/date_text.h"

#include <algorithm>

#include "base/errors.h"

namespace quire::jinja {
namespace {

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

// The longer conversions are written as shorter ones.
std::string_view Expansion(char conversion) {
  switch (conversion) {
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    case 'D':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'R':
      return "%H:%M";
    case 'T':
      return "%H:%M:%S";
    case 'x':
      return "%m/%d/%y";
    case 'X':
      return "%H:%M:%S";
    default:
      return {};
  }
}

std::string Number(int value, int width, bool bare, char fill = '0') {
  std::string digits = std::to_string(value);
  if (bare || static_cast<int>(digits.size()) >= width) return digits;
  return std::string(static_cast<size_t>(width) - digits.size(), fill) + digits;
}

}  // namespace

StatusOr<std::string> FormatDate(std::string_view format, const std::tm& time) {
  const std::string_view day = kDays[std::clamp(time.tm_wday, 0, 6)];
  const std::string_view month = kMonths[std::clamp(time.tm_mon, 0, 11)];
  const int hour12 = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
  std::string result;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      result.push_back(format[i]);
      continue;
    }
    const bool bare = format.substr(i + 1).starts_with('-');
    i += bare ? 2 : 1;
    if (i >= format.size()) return InvalidArgument("strftime_now: a % at the end of '{}'", format);
    switch (const char c = format[i]) {
      case 'a':
        result += day.substr(0, 3);
        break;
      case 'A':
        result += day;
        break;
      case 'b':
        result += month.substr(0, 3);
        break;
      case 'B':
        result += month;
        break;
      case 'd':
        result += Number(time.tm_mday, 2, bare);
        break;
      case 'e':
        result += Number(time.tm_mday, 2, bare, ' ');
        break;
      case 'H':
        result += Number(time.tm_hour, 2, bare);
        break;
      case 'I':
        result += Number(hour12, 2, bare);
        break;
      case 'j':
        result += Number(time.tm_yday + 1, 3, bare);
        break;
      case 'm':
        result += Number(time.tm_mon + 1, 2, bare);
        break;
      case 'M':
        result += Number(time.tm_min, 2, bare);
        break;
      case 'p':
        result += time.tm_hour < 12 ? "AM" : "PM";
        break;
      case 'S':
        result += Number(time.tm_sec, 2, bare);
        break;
      case 'w':
        result += Number(time.tm_wday, 1, bare);
        break;
      case 'y':
        result += Number((time.tm_year % 100 + 100) % 100, 2, bare);
        break;
      case 'Y':
        result += Number(time.tm_year + 1900, 4, bare);
        break;
      case '%':
        result += '%';
        break;
      default: {
        const std::string_view longer = Expansion(c);
        if (longer.empty()) return Unsupported("strftime_now: '%{}' is not supported", c);
        QUIRE_ASSIGN_OR_RETURN(const std::string text, FormatDate(longer, time));
        result += text;
      }
    }
  }
  return result;
}

}  // namespace quire::jinja
