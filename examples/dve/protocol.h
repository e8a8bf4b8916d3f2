// protocol.h: what server and users say to each other over UDP, and the map that both know.
//
// Every message begins with 'D' 'V' version kind; numbers are little-endian, written byte by byte,
// so that neither padding nor the byte order of the host gets on the wire. Positions are unsigned
// centimetres and speeds signed centimetres a second: integers, so no NaN can arrive in a packet.
//
//   LOGIN    nonce:4                                         answered with WELCOME; sent until it is
//   UPDATE   user:2 session:4 number:4 wanted speed:3*2      10 times a second
//   LOGOUT   user:2 session:4
//   WELCOME  nonce:4 user:2 session:4
//   STATE    step:4 company:2 count:2 count*(user:2 x:2 y:2 z:2)   yourself first, then the nearest
//
// The read functions accept exactly the lengths above and known kinds, and nothing else. Whether a
// user is logged in, and from this address, is for the server to check.
#ifndef DVE_PROTOCOL_H
#define DVE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MAX_USERS = 2000, // user ids are 1…MAX_USERS
    WORLD_SIZE = 256, // metres, x and y
    WORLD_HEIGHT = 48,
    MAX_SPEED = 12, // metres a second
    STATE_AVATARS = 40, // avatars in a STATE packet, oneself included
};

// The first three are Figure 3's event kinds, with the values that the `kind` column shows.
enum message_kind { UPDATE, LOGIN, LOGOUT, WELCOME, STATE };

enum {
    PROTOCOL_VERSION = 1,
    HEADER_BYTES = 4,
    UPDATE_BYTES = HEADER_BYTES + 16,
    LOGIN_BYTES = HEADER_BYTES + 4,
    LOGOUT_BYTES = HEADER_BYTES + 6,
    WELCOME_BYTES = HEADER_BYTES + 10,
    STATE_HEADER_BYTES = HEADER_BYTES + 8,
    STATE_AVATAR_BYTES = 8,
    MAX_MESSAGE_BYTES = STATE_HEADER_BYTES + STATE_AVATARS * STATE_AVATAR_BYTES,
};

struct message {
    enum message_kind kind;
    int user;
    uint32_t nonce, session, number;
    int16_t wanted[3]; // UPDATE: centimetres a second
};

struct avatar_state {
    int user;
    uint16_t at[3]; // centimetres
};

struct state {
    uint32_t step;
    int company; // how many others this user can see
    int count;
    struct avatar_state avatars[STATE_AVATARS];
};

static inline uint8_t *put16(uint8_t *p, unsigned v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    return p + 2;
}

static inline uint8_t *put32(uint8_t *p, uint32_t v) {
    return put16(put16(p, v & 0xffff), v >> 16);
}

static inline uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

static inline uint32_t get32(const uint8_t *p) {
    return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static inline uint8_t *put_header(uint8_t *p, enum message_kind kind) {
    p[0] = 'D';
    p[1] = 'V';
    p[2] = PROTOCOL_VERSION;
    p[3] = (uint8_t)kind;
    return p + HEADER_BYTES;
}

// Writes any message but STATE; returns its length.
static inline size_t write_message(uint8_t packet[MAX_MESSAGE_BYTES], const struct message *m) {
    uint8_t *p = put_header(packet, m->kind);
    if (m->kind == LOGIN || m->kind == WELCOME)
        p = put32(p, m->nonce);
    if (m->kind != LOGIN) {
        p = put16(p, (unsigned)m->user);
        p = put32(p, m->session);
    }
    if (m->kind == UPDATE) {
        p = put32(p, m->number);
        for (int i = 0; i < 3; i++)
            p = put16(p, (uint16_t)m->wanted[i]);
    }
    return (size_t)(p - packet);
}

// Reads any message but STATE.
static inline bool read_message(const uint8_t *packet, size_t length, struct message *m) {
    static const size_t lengths[] = {
        [UPDATE] = UPDATE_BYTES, [LOGIN] = LOGIN_BYTES, [LOGOUT] = LOGOUT_BYTES, [WELCOME] = WELCOME_BYTES};
    if (length < HEADER_BYTES || packet[0] != 'D' || packet[1] != 'V' ||
        packet[2] != PROTOCOL_VERSION || packet[3] > WELCOME || length != lengths[packet[3]])
        return false;
    *m = (struct message){.kind = (enum message_kind)packet[3]};
    const uint8_t *p = packet + HEADER_BYTES;
    if (m->kind == LOGIN || m->kind == WELCOME) {
        m->nonce = get32(p);
        p += 4;
    }
    if (m->kind != LOGIN) {
        m->user = get16(p);
        m->session = get32(p + 2);
        p += 6;
        if (m->user < 1 || m->user > MAX_USERS)
            return false;
    }
    if (m->kind == UPDATE) {
        m->number = get32(p);
        for (int i = 0; i < 3; i++)
            m->wanted[i] = (int16_t)get16(p + 4 + 2 * i);
    }
    return true;
}

static inline size_t write_state(uint8_t packet[MAX_MESSAGE_BYTES], const struct state *s) {
    uint8_t *p = put_header(packet, STATE);
    p = put32(p, s->step);
    p = put16(p, (unsigned)s->company);
    p = put16(p, (unsigned)s->count);
    for (int i = 0; i < s->count; i++) {
        p = put16(p, (unsigned)s->avatars[i].user);
        for (int axis = 0; axis < 3; axis++)
            p = put16(p, s->avatars[i].at[axis]);
    }
    return (size_t)(p - packet);
}

static inline bool read_state(const uint8_t *packet, size_t length, struct state *s) {
    if (length < STATE_HEADER_BYTES || packet[0] != 'D' || packet[1] != 'V' ||
        packet[2] != PROTOCOL_VERSION || packet[3] != STATE)
        return false;
    s->step = get32(packet + 4);
    s->company = get16(packet + 8);
    s->count = get16(packet + 10);
    if (s->count < 1 || s->count > STATE_AVATARS ||
        length != STATE_HEADER_BYTES + (size_t)s->count * STATE_AVATAR_BYTES)
        return false;
    const uint8_t *p = packet + STATE_HEADER_BYTES;
    for (int i = 0; i < s->count; i++, p += STATE_AVATAR_BYTES) {
        s->avatars[i].user = get16(p);
        for (int axis = 0; axis < 3; axis++)
            s->avatars[i].at[axis] = get16(p + 2 + 2 * axis);
    }
    return true;
}

#endif
