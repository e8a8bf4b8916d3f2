/* What the library itself does, which must write no frames. */
#ifndef PPT_HIDDEN_H
#define PPT_HIDDEN_H

/* Not 0: this thread is at the library's own work. */
extern __thread int ppt_hidden __attribute__((visibility("hidden")));

#endif
