/* How long a message takes there and back, from user to user, in µs. */
CREATE VIEW runs AS
SELECT capture, split_part(split_part(path, 'size=', 2), ',', 1) AS size,
    split_part(split_part(path, 'load=', 2), ',', 1) AS load FROM captures;

SELECT CAST(size AS INT) AS size, load, CASE src_point WHEN 'stimulus_sent' THEN 'there' ELSE 'back' END AS way,
    count(*) AS messages,
    round(avg(latency) / 1e3, 1) AS mean,
    round(percentile_cont(0.5) WITHIN GROUP (ORDER BY latency) / 1e3, 1) AS p50,
    round(percentile_cont(0.99) WITHIN GROUP (ORDER BY latency) / 1e3, 1) AS p99,
    round(max(latency) / 1e3, 1) AS most,
    round(max(latency_hi - latency_lo) / 2e3, 2) AS plus_minus
FROM edges JOIN runs ON capture = src_capture
WHERE src_point IN ('stimulus_sent', 'response_sent')
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 DESC;

/* The hosts are one machine, with one counter: how far from the truth the latencies are, in µs. */
WITH rate AS (
    SELECT CAST(max(b) - min(b) AS DOUBLE) / CAST(max(a_before) - min(a_before) AS DOUBLE) AS ns
    FROM clocks WHERE clock_a = 'tick' AND clock_b = 'monotonic'
),
passed AS (
    SELECT segment, ring, seqno, ticks FROM stimulus_sent
    UNION ALL SELECT segment, ring, seqno, ticks FROM stimulus_received
    UNION ALL SELECT segment, ring, seqno, ticks FROM response_sent
    UNION ALL SELECT segment, ring, seqno, ticks FROM response_received
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
