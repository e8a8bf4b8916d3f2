/* Table 5: mean and standard deviation in ms; of M8 a number a second, of M12 a ratio. */
WITH ways AS (
    SELECT c.node AS from_node, p.node AS to_node, w.latency
    FROM paths('created', 'processed') w
    JOIN created c ON (c.segment, c.ring, c.seqno) = (w.src_segment, w.src_ring, w.src_seqno)
    JOIN processed p ON (p.segment, p.ring, p.seqno) = (w.dst_segment, w.dst_ring, w.dst_seqno)
),
inside AS (
    SELECT r.node, w.latency FROM paths('received', 'processed') w
    JOIN received r ON (r.segment, r.ring, r.seqno) = (w.src_segment, w.src_ring, w.src_seqno)
),
leaving AS (
    SELECT c.node, e.latency FROM edges e
    JOIN created c ON (c.segment, c.ring, c.seqno) = (e.src_segment, e.src_ring, e.src_seqno)
    WHERE e.dst_point = 'sent'
),
samples AS (
    SELECT 'M4 ' || node || ', received to processed' AS metric, latency / 1e6 AS value FROM inside
    UNION ALL SELECT 'M4 ' || node || ', created to sent', latency / 1e6 FROM leaving
    UNION ALL SELECT 'M5 ' || from_node || ' to ' || to_node, latency / 1e6 FROM ways
    UNION ALL SELECT 'M11 created to taken', latency / 1e6 FROM paths('created', 'taken')
    UNION ALL SELECT 'M8 copies a second', count(*) * 1e9 / CAST(max(ts) - min(ts) AS BIGINT)
        FROM points WHERE point IN ('sent', 'routed')
    UNION ALL SELECT 'M12 acting against passing on',
        sum(time) FILTER (WHERE stage = 'taken -> processed') * 1.0
            / sum(time) FILTER (WHERE stage <> 'taken -> processed')
        FROM critical_path('created', 'processed')
)
SELECT metric, round(avg(value), 3) AS mean, round(coalesce(stddev(value), 0), 3) AS sd
FROM samples GROUP BY metric ORDER BY CAST(substr(split_part(metric, ' ', 1), 2) AS INT), metric
