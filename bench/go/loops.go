package cost

// The same frames in C, in the same process, and a call that does nothing: copied into the package.

/*
#include "cost.h"

static const char *const cost_names[4] = {"main", "worker-3", "acceptor", "0123456789abcdef"};

static void cost_empty(void) {}

static void cost_request(int calls) {
	for (int i = 0; i < calls; i++) {
		PPT_BEGIN_REQUEST(f) {
			f.id = (uint64_t)i;
			f.kind = i;
			f.who = i >> 1;
			f.a = (uint64_t)i;
			f.b = (uint64_t)i;
		}
		__asm__ volatile("" : : : "memory");
	}
}

static void cost_named(int calls) {
	for (int i = 0; i < calls; i++) {
		PPT_WRITE_NAMED(f) {
			f.kind = i;
			f.who = i >> 1;
			f.a = (uint64_t)i;
			f.b = (uint64_t)i;
			PPT_TEXT(f.name, cost_names[i & 3]);
		}
		__asm__ volatile("" : : : "memory");
	}
}

static void cost_handled(int calls) {
	for (int i = 0; i < calls; i++) {
		uint64_t start = ppt_cost_now();
		__asm__ volatile("" : : : "memory");
		PPT_WRITE_HANDLED(f) {
			f.kind = i;
			f.who = i >> 1;
			f.a = (uint64_t)i;
			f.b = (uint64_t)i;
			f.handle_start = start;
			f.handle_end = ppt_cost_now();
		}
		__asm__ volatile("" : : : "memory");
	}
}

static void cost_counter(int calls) {
	for (int i = 0; i < calls; i++) {
		PPT_ADD_BYTES_IN((uint64_t)i);
		__asm__ volatile("" : : : "memory");
	}
}
*/
import "C"

func Empty(calls int) {
	for i := 0; i < calls; i++ {
		C.cost_empty()
	}
}

func CRequest(calls int) { C.cost_request(C.int(calls)) }
func CNamed(calls int)   { C.cost_named(C.int(calls)) }
func CHandled(calls int) { C.cost_handled(C.int(calls)) }
func CCounter(calls int) { C.cost_counter(C.int(calls)) }
