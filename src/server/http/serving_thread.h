// What the server's threads have in common: they give way to the engine's workers.
//
// Threading: the calling thread.
#pragma once

namespace quire {

// Text may wait, a step not. With 10 such a thread starves on a machine that others use too.
constexpr int kServingNice = 5;

// Gives the calling thread that nice value, and a name for `top`.
void BeServingThread(const char* name);

}  // namespace quire
