#include "cli/interrupt.h"

#include <csignal>

namespace quire {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void SetHandler(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;  // without SA_RESTART: a read of the terminal ends
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  interrupted = false;
  SetHandler([](int) { interrupted = true; });
}
Interrupt::~Interrupt() { SetHandler(SIG_DFL); }

const std::atomic<bool>* Interrupt::flag() const { return &interrupted; }
void Interrupt::Set() { interrupted = true; }
void Interrupt::Clear() { interrupted = false; }

}  // namespace quire
