/* A library with frames of its own; here in block form, which costs least when nobody looks. */
#include "words.h"

#include "word.h"

#include <string.h>

int count_words(const char *text) {
    int count = 0;
    for (;;) {
        text += strspn(text, " \t\r\n");
        size_t length = strcspn(text, " \t\r\n");
        if (length == 0)
            return count;
        PPT_WRITE_WORD(f) {
            f.length = (int)length;
            memcpy(f.text, text, length < sizeof f.text ? length : sizeof f.text);
        }
        text += length;
        count++;
    }
}
