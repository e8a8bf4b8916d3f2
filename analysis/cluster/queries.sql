-- Queries in plain SQL over the columns of exported Parquet: each time as nanoseconds, and
-- the interval `handle`. Each answer is in a definite order.

-- name: how many frames are there on each host, and is each there once?
SELECT host, count(*) AS n, count(DISTINCT seqno) AS different, sum(seqno) AS total
FROM job GROUP BY host ORDER BY host;

-- name: how many are there of each kind, and how long do they take?
SELECT kind, count(*) AS n, sum(handle) AS busy, max(handle) AS longest
FROM job GROUP BY kind ORDER BY kind;

-- name: the 99th percentile of each kind
SELECT kind, percentile_cont(0.99) WITHIN GROUP (ORDER BY handle) AS p99
FROM job GROUP BY kind ORDER BY kind;

-- name: which frames took longest?
SELECT host, seqno, kind, who, handle
FROM job ORDER BY handle DESC, host, seqno LIMIT 10;

-- name: when did a thread wait longest between two frames?
SELECT host, seqno, idle FROM (
    SELECT host, seqno, handle_start_ns - lag(handle_end_ns)
        OVER (PARTITION BY host, pid, ring ORDER BY seqno) AS idle
    FROM job
) AS waits WHERE idle IS NOT NULL ORDER BY idle DESC, host, seqno LIMIT 10;

-- name: how many users were active in each second?
SELECT handle_end_ns - handle_end_ns % 1000000000 AS since, count(DISTINCT who) AS users, count(*) AS n
FROM job GROUP BY handle_end_ns - handle_end_ns % 1000000000 ORDER BY since;

-- name: which users did the same thing twice within a millisecond?
SELECT a.kind AS kind, count(*) AS n
FROM job AS a JOIN job AS b
ON a.host = b.host AND a.who = b.who AND a.kind = b.kind
    AND a.handle_start_ns - a.handle_start_ns % 1000000 = b.handle_start_ns - b.handle_start_ns % 1000000
WHERE a.seqno < b.seqno
GROUP BY a.kind ORDER BY a.kind;
