/* Where the functions are that stand behind ours. */
#ifndef PPT_NEXT_H
#define PPT_NEXT_H

/* Finds a function behind ours, or returns 0. This works at any time: before the constructors have run,
 * in programs without dlsym(3), and under any lock. It allocates nothing and takes no lock. */
void *ppt_next(const char *name);

/* The same by dlsym(3), where there is one: once the constructors run. `version` is the one that programs
 * of today ask for, where the C library has an older function of this name, too; or 0. */
void *ppt_next_by_linker(const char *name, const char *version);

#endif
