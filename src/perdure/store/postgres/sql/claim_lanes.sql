-- The lanes above a number.
SELECT lane, organization, queue, kind, capabilities::text, priority
FROM perdure_lanes AS lanes
WHERE lane > %(above)s::bigint
ORDER BY lane
