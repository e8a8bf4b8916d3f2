SELECT src_point, dst_point, count(*) AS questions,
    count(*) FILTER (WHERE certainty = 'certain') AS certain,
    count(DISTINCT src_pid) + count(DISTINCT dst_pid) FILTER (WHERE dst_pid <> src_pid) AS processes,
    approx_percentile_cont(latency, 0.5) AS half, max(latency) AS longest
FROM edges WHERE kind = 'hash' GROUP BY 1, 2 ORDER BY min(src_ts)
