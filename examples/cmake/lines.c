/* Tells the number of words of each line that it reads, and leaves a frame behind. */
#include "lines.h"
#include "words.h"

#include <stdio.h>

int main(void) {
    char line[4096];
    unsigned long number = 0, words = 0;

    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        WRITE_LINE_HANDLE_START_TIMESTAMP();
        int count = count_words(line);
        printf("%d\n", count);
        WRITE_LINE_HANDLE_END_TIMESTAMP();
        WRITE_LINE_NUMBER(++number);
        WRITE_LINE_WORDS(count);
        ppt_write_line_frame();
        words += (unsigned long)count;
    }
    printf("lines %lu\nwords %lu\n", number, words);
    return 0;
}
