/* Each path beside the three edges that it goes along, from its end back to its beginning. */
SELECT count(*) AS requests, sum(p.latency) AS ns, sum(a.latency + b.latency + c.latency) AS ns_of_stages,
    max(abs(p.latency - a.latency - b.latency - c.latency)) AS furthest_apart
FROM paths('asked', 'answered') p
JOIN edges c ON c.dst_point = 'answered'
    AND (c.dst_segment, c.dst_ring, c.dst_seqno) = (p.dst_segment, p.dst_ring, p.dst_seqno)
JOIN edges b ON b.dst_point = 'replied'
    AND (b.dst_segment, b.dst_ring, b.dst_seqno) = (c.src_segment, c.src_ring, c.src_seqno)
JOIN edges a ON a.dst_point = 'taken'
    AND (a.dst_segment, a.dst_ring, a.dst_seqno) = (b.src_segment, b.src_ring, b.src_seqno)
WHERE (a.src_segment, a.src_ring, a.src_seqno) = (p.src_segment, p.src_ring, p.src_seqno)
