/* Work of the library itself, which must write no frames. */
#ifndef PPT_HIDDEN_H
#define PPT_HIDDEN_H

/* Not 0 while this thread does work of the library itself. */
extern __thread int ppt_hidden __attribute__((visibility("hidden")));

#endif
