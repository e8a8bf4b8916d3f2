// queries.c: a program that answers questions with SQLite, for bench/compare/run. Each round of
// questions is a frame. Built with -DSLOWER=5, a round takes 5 % longer.
//
//     queries [ROUNDS]
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "query.h"

#ifndef SLOWER
#define SLOWER 0 // percent
#endif

static const char *const questions[] = {
    "SELECT count(*), sum(price) FROM sale WHERE price % 7 = 3",
    "SELECT sum(price) FROM sale JOIN shop ON shop.id = sale.shop WHERE shop.open",
    "SELECT price FROM sale ORDER BY price * 7919 % 1009 LIMIT 10",
};
enum { QUESTIONS = sizeof questions / sizeof questions[0] };

static sqlite3 *database;

static void check(int code, int expected) {
    if (code == expected)
        return;
    fprintf(stderr, "queries: %s\n", sqlite3_errmsg(database));
    exit(1);
}

static void answer(sqlite3_stmt *const prepared[QUESTIONS]) {
    int64_t began = ppt_query_now();
    for (int i = 0; i < QUESTIONS; i++) {
        int code;
        while ((code = sqlite3_step(prepared[i])) == SQLITE_ROW)
            ;
        check(code, SQLITE_DONE);
        check(sqlite3_reset(prepared[i]), SQLITE_OK);
    }
    // By the clock of the frames, which stands still while nobody is attached.
    int64_t took = ppt_query_now() - began, slower = took + took * SLOWER / 100;
    while (ppt_query_now() - began < slower)
        ;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    sqlite3_stmt *prepared[QUESTIONS];
    check(sqlite3_open(":memory:", &database), SQLITE_OK);
    check(sqlite3_exec(database,
                       "CREATE TABLE shop(id INTEGER PRIMARY KEY, open);"
                       "CREATE TABLE sale(shop, price);"
                       "WITH n(i) AS (VALUES(0) UNION ALL SELECT i + 1 FROM n WHERE i < 99)"
                       "  INSERT INTO shop SELECT i, i % 3 FROM n;"
                       "WITH n(i) AS (VALUES(0) UNION ALL SELECT i + 1 FROM n WHERE i < 1999)"
                       "  INSERT INTO sale SELECT i * 31 % 100, i * 7919 % 1000 FROM n;",
                       NULL, NULL, NULL),
          SQLITE_OK);
    for (int i = 0; i < QUESTIONS; i++)
        check(sqlite3_prepare_v2(database, questions[i], -1, &prepared[i], NULL), SQLITE_OK);
    for (int round = 0; round < rounds; round++) {
        WRITE_QUERY_ANSWER_START_TIMESTAMP();
        answer(prepared);
        WRITE_QUERY_ANSWER_END_TIMESTAMP();
        ppt_write_query_frame();
    }
    return 0;
}
