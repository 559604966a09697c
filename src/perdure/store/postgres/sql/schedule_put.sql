-- Let a schedule stand as its new document says. A paused one stays so.
INSERT INTO perdure_schedules AS schedules (organization, name, version, anchor_us, next_us, look_us)
VALUES (%(organization)s::text, %(name)s::text, %(version)s::bigint, %(anchor_us)s::bigint, %(next_us)s::bigint, %(look_us)s::bigint)
ON CONFLICT (organization, name) DO UPDATE
SET version = excluded.version,
    anchor_us = excluded.anchor_us,
    next_us = excluded.next_us,
    look_us = CASE WHEN schedules.paused THEN NULL ELSE excluded.look_us END
