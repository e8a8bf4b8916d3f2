/* From a user's update to the first state that it is a part of, by host of the user and by step, in ms. */
CREATE VIEW runs AS
SELECT capture, host, CAST(split_part(split_part(path, 'users=', 2), ',', 1) AS INT) AS users FROM captures;

SELECT users, s.host AS "from", d.host AS "to", dst_point AS point, count(*) AS messages,
    round(percentile_cont(0.5) WITHIN GROUP (ORDER BY latency) / 1e6, 3) AS p50,
    round(percentile_cont(0.99) WITHIN GROUP (ORDER BY latency) / 1e6, 3) AS p99,
    round(max(latency_hi - latency_lo) / 2e6, 4) AS plus_minus
FROM edges e JOIN runs s ON s.capture = e.src_capture
JOIN (SELECT capture, host FROM runs) d ON d.capture = e.dst_capture
WHERE src_point <> 'update_taken'
GROUP BY 1, 2, 3, 4 ORDER BY 1, 4 DESC, 2, 3;

SELECT users, host, count(*) AS updates,
    round(percentile_cont(0.5) WITHIN GROUP (ORDER BY latency) / 1e6, 1) AS p50,
    round(percentile_cont(0.99) WITHIN GROUP (ORDER BY latency) / 1e6, 1) AS p99,
    round(max(latency) / 1e6, 1) AS most
FROM (
    SELECT src_capture, min(latency) AS latency FROM paths('update_sent', 'state_received')
    GROUP BY src_capture, src_segment, src_ring, src_seqno
) JOIN runs ON capture = src_capture
GROUP BY 1, 2 ORDER BY 1, 2;
