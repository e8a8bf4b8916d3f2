/* The rows of C and of C++: each runs so many calls. */
#ifndef BENCH_LANGUAGES_ROWS_H
#define BENCH_LANGUAGES_ROWS_H

#ifdef __cplusplus
extern "C" {
#endif
void c_span(int calls);
void c_text(int calls);
void c_interval(int calls);
void c_counter(int calls);
void cpp_span(int calls);
void cpp_text(int calls);
void cpp_interval(int calls);
void cpp_counter(int calls);
#ifdef __cplusplus
}
#endif

/* What a loop does is not taken out of it. */
#define KEEP() __asm__ volatile("" : : : "memory")

#endif
