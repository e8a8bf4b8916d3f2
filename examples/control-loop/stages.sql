/* Of each load: the stages of the loop, the whole of it, and how both agree. Times are in µs. */
CREATE VIEW runs AS
SELECT capture, host, split_part(path, '/', -2) AS run, split_part(split_part(path, 'load=', 2), ',', 1) AS load FROM captures;

SELECT load, s.host || ' to ' || d.host AS stage, count(*) AS messages,
    round(percentile_cont(0.5) WITHIN GROUP (ORDER BY latency) / 1e3, 1) AS p50,
    round(percentile_cont(0.99) WITHIN GROUP (ORDER BY latency) / 1e3, 1) AS p99,
    round(max(latency) / 1e3, 1) AS most,
    round(max(latency_hi - latency_lo) / 2e3, 2) AS plus_minus
FROM edges e JOIN runs s ON s.capture = e.src_capture
JOIN (SELECT capture, host FROM runs) d ON d.capture = e.dst_capture
GROUP BY 1, 2 ORDER BY 1, 2;

SELECT load, count(*) AS messages,
    round(percentile_cont(0.5) WITHIN GROUP (ORDER BY latency) / 1e3, 1) AS p50,
    round(percentile_cont(0.99) WITHIN GROUP (ORDER BY latency) / 1e3, 1) AS p99,
    round(max(latency) / 1e3, 1) AS most
FROM paths('created', 'arrived') w JOIN runs ON capture = src_capture
GROUP BY 1 ORDER BY 1;

/* The hosts are one machine, with one counter: how far from the truth the latencies are, in µs. */
WITH rate AS (
    SELECT CAST(max(b) - min(b) AS DOUBLE) / CAST(max(a_before) - min(a_before) AS DOUBLE) AS ns
    FROM clocks WHERE clock_a = 'tick' AND clock_b = 'monotonic'
),
passed AS (
    SELECT segment, ring, seqno, ticks FROM created
    UNION ALL SELECT segment, ring, seqno, ticks FROM received
    UNION ALL SELECT segment, ring, seqno, ticks FROM sent
    UNION ALL SELECT segment, ring, seqno, ticks FROM arrived
),
known AS (
    SELECT src_capture, latency, latency_lo, latency_hi, CAST(d.ticks - s.ticks AS DOUBLE) * ns AS truth
    FROM edges e CROSS JOIN rate
    JOIN passed s ON (s.segment, s.ring, s.seqno) = (e.src_segment, e.src_ring, e.src_seqno)
    JOIN passed d ON (d.segment, d.ring, d.seqno) = (e.dst_segment, e.dst_ring, e.dst_seqno)
    WHERE src_capture <> dst_capture
)
SELECT load, count(*) AS messages,
    count(*) FILTER (WHERE truth BETWEEN latency_lo AND latency_hi) AS within_bounds,
    round(percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(latency - truth)) / 1e3, 2) AS off_p50,
    round(max(abs(latency - truth)) / 1e3, 2) AS off_most
FROM known JOIN runs ON capture = src_capture GROUP BY 1 ORDER BY 1;
