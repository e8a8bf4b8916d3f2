/* The number of words of a text. Who calls it need not know of frames. */
#ifndef WORDS_H
#define WORDS_H

int count_words(const char *text);

#endif
