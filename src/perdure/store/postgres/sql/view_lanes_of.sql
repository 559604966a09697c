-- The lanes of an organization that are of some kinds and queues; an empty list is any.
SELECT coalesce(json_agg(lanes.lane ORDER BY lanes.lane), '[]')::text
FROM perdure_lanes AS lanes
WHERE lanes.organization = %(organization)s::text
AND (%(queues)s::jsonb = '[]' OR %(queues)s::jsonb ? lanes.queue)
AND (%(kinds)s::jsonb = '[]' OR %(kinds)s::jsonb ? lanes.kind)
