#include "server/http/serving_thread.h"

#include <pthread.h>
#include <sys/resource.h>

namespace quire {

void BeServingThread(const char* name) {
  pthread_setname_np(pthread_self(), name);
  // Linux counts nice values by thread; 0 is this one. Refusal is no harm: it only gives way less.
  (void)setpriority(PRIO_PROCESS, 0, kServingNice);
}

}  // namespace quire
