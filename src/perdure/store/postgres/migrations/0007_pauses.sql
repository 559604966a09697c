-- Since when what a document pauses is paused, and by whom, whatever else of it is changed later.

ALTER TABLE perdure_definitions ADD COLUMN paused_us bigint, ADD COLUMN paused_by text;
UPDATE perdure_definitions SET paused_us = updated_us, paused_by = actor
WHERE type IN ('queue', 'organization', 'kind') AND document ->> 'paused' = 'true';
