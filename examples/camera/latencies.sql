/* Of each message that was seen, when it was seen first; and what lies between. */
WITH seen AS (
    SELECT 'created -> seen first' AS path, min(latency) AS ns FROM paths('created', 'seen')
    GROUP BY src_segment, src_ring, src_seqno
    UNION ALL
    SELECT 'processed -> seen first', min(latency) FROM edges WHERE dst_point = 'seen'
    GROUP BY src_segment, src_ring, src_seqno
    UNION ALL
    SELECT 'received -> processed', latency FROM edges WHERE dst_point = 'processed'
)
SELECT path, count(*) AS messages, round(avg(ns) / 1e6, 3) AS ms, round(stddev(ns) / 1e6, 3) AS sd,
    round(min(ns) / 1e6, 3) AS min, round(max(ns) / 1e6, 3) AS max
FROM seen GROUP BY path ORDER BY path
