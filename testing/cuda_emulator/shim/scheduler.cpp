// Run the threads of CUDA blocks on the CPU: fibers within a block, blocks over OS threads.
//
// A fiber runs until it waits (at a barrier, or with its warp) or ends; then the next of the order
// runs. When all wait, warps that are complete go on, else the block's barrier opens. Shared memory
// is the thread-local storage of the kernel's own library; it is filled with 0xff (NaN) before
// every block. A complaint stops the launch and says what, where and which thread.

#include "scheduler.h"

#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

__thread Index3 threadIdx, blockIdx;
Index3 blockDim, gridDim;

namespace {

const unsigned WARP = 32;
const size_t STACK = 64 << 10;

enum class State { ready, barrier, warp, done };

struct Fiber {
  jmp_buf at;
  State state = State::done;
  bool started = false;
  int line = 0;
  unsigned mask = 0;
};

const Launch* current;
std::atomic<bool> stopped;
std::mutex complaints;

void complain(const char* format, ...) {
  const std::lock_guard<std::mutex> lock(complaints);
  if (stopped.exchange(true)) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(current->message, current->message_size, "%s, block (%u, %u, %u), thread (%u, %u, %u)",
           text, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
}

Index3 unflatten(unsigned i, const Index3& size) {
  return {i % size.x, i / size.x % size.y, i / size.x / size.y};
}

unsigned volume(const Index3& size) { return size.x * size.y * size.z; }

// The order of `n` things.
class Order {
 public:
  Order(unsigned n, int kind, unsigned seed) : items_(n), kind_(kind), seed_(seed | 1) {
    for (unsigned i = 0; i < n; ++i) items_[i] = kind == 1 ? n - 1 - i : i;
  }
  const std::vector<unsigned>& next() {
    if (kind_ == 2)
      for (size_t i = items_.size(); i > 1; --i) std::swap(items_[i - 1], items_[random() % i]);
    return items_;
  }

 private:
  unsigned random() {  // xorshift
    seed_ ^= seed_ << 13;
    seed_ ^= seed_ >> 17;
    return seed_ ^= seed_ << 5;
  }
  std::vector<unsigned> items_;
  int kind_;
  unsigned seed_;
};

// This OS thread's storage of the library that holds the kernel: where it is and how large.
struct Shared {
  uintptr_t library = 0;
  void* memory = nullptr;
  size_t bytes = 0;
};

int find_shared(dl_phdr_info* info, size_t, void* result) {
  Shared* shared = (Shared*)result;
  if (info->dlpi_addr != shared->library) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_TLS) {
      shared->memory = info->dlpi_tls_data;
      shared->bytes = info->dlpi_phdr[i].p_memsz;
    }
  return 1;
}

// Runs blocks, one after another, on one OS thread.
class Worker {
 public:
  explicit Worker(unsigned number)
      : fibers_(volume(current->block)),
        slots_((fibers_.size() + WARP - 1) / WARP * WARP),
        order_(fibers_.size(), current->order, current->seed + number) {
    current->touch();
    Dl_info info;
    dladdr((void*)current->kernel, &info);
    shared_.library = (uintptr_t)info.dli_fbase;
    dl_iterate_phdr(find_shared, &shared_);
    if (current->waits)
      stacks_ = (char*)mmap(nullptr, fibers_.size() * STACK, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Worker() {
    if (current->waits) munmap(stacks_, fibers_.size() * STACK);
  }

  void run(unsigned block) {
    blockIdx = unflatten(block, gridDim);
    if (shared_.bytes) memset(shared_.memory, 0xff, shared_.bytes);
    if (!current->waits) {
      for (const unsigned i : order_.next()) {
        threadIdx = unflatten(i, blockDim);
        body();
        if (stopped) return;
      }
      return;
    }
    for (Fiber& fiber : fibers_) fiber.state = State::ready;
    do {
      for (const unsigned i : order_.next())
        if (!stopped && fibers_[i].state == State::ready) resume(i);
    } while (!stopped && (open_warps() || open_barrier()));
  }

  // Called on a fiber: wait, or end.
  void leave(State state, int line = 0, unsigned mask = 0) {
    Fiber& fiber = fibers_[running_];
    fiber.state = state;
    fiber.line = line;
    fiber.mask = mask;
    if (!_setjmp(fiber.at)) _longjmp(scheduler_, 1);
  }

  // A fiber's life: one thread of each block.
  void live() {
    for (;;) {
      body();
      leave(State::done);
    }
  }

  unsigned lane() const { return running_ % WARP; }
  unsigned long long* slots() { return &slots_[running_ / WARP * WARP]; }

 private:
  void body() {
    try {
      current->kernel(current->pointers);
    } catch (int) {
    }
  }

  void resume(unsigned i);

  // Let go on every warp whose live threads all wait in it; whether there was one.
  bool open_warps() {
    bool opened = false;
    for (size_t first = 0; first < fibers_.size(); first += WARP) {
      const size_t last = std::min(first + WARP, fibers_.size());
      unsigned waiting = 0, live = 0;
      for (size_t i = first; i < last; ++i) {
        waiting |= (fibers_[i].state == State::warp ? 1u : 0u) << (i - first);
        live |= (fibers_[i].state != State::done ? 1u : 0u) << (i - first);
      }
      if (waiting == 0 || waiting != live) continue;
      for (unsigned lane = 0; lane < WARP; ++lane)  // who takes no part has nothing to give
        if (!(waiting >> lane & 1)) slots_[first + lane] = ~0ull;
      for (size_t i = first; i < last; ++i)
        if (fibers_[i].state == State::warp) opened |= open_lane(i, live);
    }
    return opened;
  }

  bool open_lane(size_t i, unsigned live) {
    threadIdx = unflatten(i, blockDim);
    if ((fibers_[i].mask & live) != live) {
      complain("line %d: a shuffle's mask %#x lacks a thread that takes part", fibers_[i].line,
               fibers_[i].mask);
      return false;
    }
    fibers_[i].state = State::ready;
    return true;
  }

  // Let all go on that wait at the barrier; whether there were any.
  bool open_barrier() {
    int line = 0;
    for (size_t i = 0; i < fibers_.size(); ++i) {
      Fiber& fiber = fibers_[i];
      if (fiber.state == State::done) continue;
      threadIdx = unflatten(i, blockDim);
      if (fiber.state == State::warp) {
        complain("line %d: a shuffle that other threads of the warp never reach", fiber.line);
        return false;
      }
      if (line != 0 && line != fiber.line) {
        complain("threads of one block wait at different barriers, lines %d and %d", line,
                 fiber.line);
        return false;
      }
      line = fiber.line;
      fiber.state = State::ready;
    }
    return line != 0;
  }

  std::vector<Fiber> fibers_;
  std::vector<unsigned long long> slots_;
  Order order_;
  Shared shared_;
  char* stacks_ = nullptr;
  jmp_buf scheduler_;
  unsigned running_ = 0;
};

__thread Worker* worker;

void enter() { worker->live(); }

void Worker::resume(unsigned i) {
  running_ = i;
  threadIdx = unflatten(i, blockDim);
  Fiber& fiber = fibers_[i];
  if (_setjmp(scheduler_)) return;
  if (fiber.started) _longjmp(fiber.at, 1);
  fiber.started = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stacks_ + i * STACK;
  context.uc_stack.ss_size = STACK;
  context.uc_link = nullptr;
  makecontext(&context, enter, 0);
  setcontext(&context);
}

void work(unsigned number, std::atomic<unsigned>* next, const std::vector<unsigned>* blocks) {
  Worker own(number);
  worker = &own;
  for (unsigned i; !stopped && (i = (*next)++) < blocks->size();) own.run((*blocks)[i]);
  worker = nullptr;
}

}  // namespace

extern "C" {

// Run a kernel; 0, or 1 with a message.
int isoform_launch(const Launch* launch) {
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  current = launch;
  stopped = false;
  blockDim = launch->block;
  gridDim = launch->grid;
  Order order(volume(gridDim), launch->order, launch->seed);
  const std::vector<unsigned>& blocks = order.next();
  std::atomic<unsigned> next{0};
  std::vector<std::thread> others;
  for (int i = 1; i < launch->workers && i < (int)blocks.size(); ++i)
    others.emplace_back(work, i, &next, &blocks);
  work(0, &next, &blocks);
  for (std::thread& other : others) other.join();
  return stopped ? 1 : 0;
}

void isoform_barrier(int line) { worker->leave(State::barrier, line); }

void isoform_warp(unsigned mask, int line) { worker->leave(State::warp, line, mask); }

unsigned long long* isoform_slots() { return worker->slots(); }

unsigned isoform_lane() { return worker->lane(); }

void isoform_outside(const char* name, long byte, long bytes, long size) {
  complain("access outside '%s': element %ld of %ld", name, byte / size, bytes / size);
  throw 0;
}

void isoform_misaligned(const char* name, long byte, long size) {
  complain("misaligned access of '%s': %ld bytes at byte %ld", name, size, byte);
  throw 0;
}

void isoform_check(const void* address, long size) {
  const uintptr_t at = (uintptr_t)address;
  for (long i = 0; i < current->count; ++i) {
    const uintptr_t base = (uintptr_t)current->pointers[i], end = base + current->bytes[i];
    if (at >= base && at < end && at + size > end)
      isoform_outside(current->names[i], at - base, current->bytes[i], size);
  }
}

// Called by the code that -fsanitize=bounds,alignment adds to arrays in shared memory and registers.
struct Place {
  const char* file;
  uint32_t line, column;
};

void __ubsan_handle_out_of_bounds(Place* place, uintptr_t index) {
  complain("line %u: index %ld outside an array", place->line, (long)index);
  throw 0;
}

void __ubsan_handle_type_mismatch_v1(Place* place, uintptr_t address) {
  complain("line %u: misaligned access at address %#lx", place->line, (unsigned long)address);
  throw 0;
}
}
