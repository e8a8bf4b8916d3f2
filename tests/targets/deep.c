/* A schema of a megabyte, made at start: nested all the way (-DNESTED), or with very many fields. */
#include <stdio.h>
#include <string.h>

extern char deep[1000000];
char deep[1000000];

static __attribute__((constructor)) void fill(void) {
#ifdef NESTED
    memset(deep, '[', sizeof deep);
#else
    char *at = deep;
    at += sprintf(at, "{\"v\":1,\"buffer\":\"many\",\"slots\":64,\"stride\":64,\"frames\":[{"
                      "\"name\":\"f\",\"kind\":\"plain\",\"size\":64,\"fields\":[");
    for (int i = 0; i < 20000; i++)
        at += sprintf(at, "%s{\"name\":\"f%d\",\"type\":\"u8\",\"offset\":8}", i ? "," : "", i);
    memset(at, ' ', (size_t)(deep + sizeof deep - at));
    memcpy(at, "]}]}", 4);
#endif
}
