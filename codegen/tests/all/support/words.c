
/* Included after the headers of a batch: a slot, what must be in it, and the comparison. */
#include <stddef.h>
#include <stdio.h>

enum { LARGEST = 4096, GUARD = 64, UNTOUCHED = 0x5a };

/* The bytes by the layout, and the bytes that were written, with room to write too far. */
static unsigned char expected[LARGEST];
static uint64_t slot[(LARGEST + GUARD) / 8];
static ppt1_thread thread;

static unsigned number, frame_id, size, begun, ended, checked;

static uint64_t random_state = 88172645463325252u;

static unsigned char random_byte(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned char)(random_state >> 32);
}

static void reset(void) {
    memset(slot, UNTOUCHED, sizeof slot);
    begun = ended = 0;
}

/* Word 0 stays untouched, it is `end` that numbers a frame; all else is zero, but the frame id. */
static void expect(unsigned of_number, unsigned of_id, unsigned of_size, int several) {
    number = of_number;
    frame_id = of_id;
    size = of_size;
    memset(expected, 0, sizeof expected);
    memset(expected, UNTOUCHED, 8);
    if (several)
        memcpy(expected + 8, &(uint16_t){(uint16_t)of_id}, 2);
    reset();
}

/* A bool is 0 or 1; text is a string of at most that length, zero-padded. */
enum kind { ANY, BOOL, TEXT };

static void fill(enum kind kind, unsigned offset, unsigned bytes) {
    unsigned length = kind == TEXT ? random_byte() % (bytes + 1) : bytes;
    for (unsigned i = 0; i < length; i++) {
        unsigned char byte = random_byte();
        expected[offset + i] = kind == BOOL ? byte & 1 : kind == TEXT ? byte | 1 : byte;
    }
}

/* What ppt sets by itself. */
static const uint64_t STAMP = 0x8877665544332211u;

static void place(unsigned offset, unsigned bytes, uint64_t value) {
    memcpy(expected + offset, &value, bytes);
}

static ppt1_thread *begin(unsigned id) {
    begun += id == frame_id;
    thread.slot = slot;
    return &thread;
}

static void end(const ppt1_thread *t) { ended += t == &thread; }

/* What was added last: to which cell, which other cell counts it. */
static struct {
    unsigned cell, other;
    uint64_t value;
} last;

static void added(unsigned of_number, const char *name, unsigned cell, unsigned other,
                  uint64_t value) {
    if (last.cell != cell || last.other != other || last.value != value)
        printf("wrong %u %s of %lu: cells %u and %u, not %u and %u\n", of_number, name,
               (unsigned long)value, last.cell, last.other, cell, other);
    last.cell = last.other = UINT32_MAX;
}

static void compare(const char *form) {
    unsigned char wrote[sizeof slot];
    memcpy(wrote, slot, sizeof slot);
    if (begun != 1 || ended != 1)
        printf("wrong %u frame %u, %s: begun %u, ended %u\n", number, frame_id, form, begun, ended);
    for (unsigned i = 0; i < sizeof wrote; i++) {
        unsigned char right = i < size ? expected[i] : UNTOUCHED;
        if (wrote[i] != right) {
            printf("wrong %u frame %u, %s: byte %u is %#x, not %#x\n", number, frame_id, form, i,
                   wrote[i], right);
            break;
        }
    }
    checked++;
    reset();
}
